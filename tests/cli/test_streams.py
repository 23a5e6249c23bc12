from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from prefix_cache_exporter import cli
from prefix_cache_exporter.cli import streams

ROOT = Path(__file__).parents[2]
LOG = "docs/worked-example.jsonl"
PROGRAM = f"{sys.executable} -m prefix_cache_exporter"


def _run(command: str, **environment: str) -> tuple[int, str]:
    """The exit code of a shell's command line, and what it said on standard error."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        capture_output=True,
        check=False,
        cwd=ROOT,
        env={**kept, **environment},
    )
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "command", ["--version", "serve --help", "check config /dev/null", f"report --format openai.chat {LOG} --json"]
)
def test_a_reader_that_is_gone_is_no_error_and_a_full_disk_is_one(command, unbuffered):
    assert _run(f"{PROGRAM} {command} | true", PYTHONUNBUFFERED=unbuffered) == (0, "")
    assert _run(f"{PROGRAM} {command} >/dev/full", PYTHONUNBUFFERED=unbuffered) == (
        1,
        "error: standard output: got no space left on device, expected one that takes what is written\n",
    )


def test_what_is_found_is_told_by_the_code_where_nobody_listens():
    assert _run(f"{PROGRAM} check log openai.chat /dev/null 2>/dev/full | true") == (1, "")


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_a_closed_stream_ends_nothing(closed):
    assert _run(f"{PROGRAM} report --format openai.chat {LOG} {closed}") == (0, "")


@pytest.mark.parametrize(
    "command",
    [
        "usage normalise --format openai.chat -",
        "report --format openai.chat -",
        "check log openai.chat -",
        "maps apply --engine-version 0.32.0 -",
    ],
)
def test_a_closed_standard_input_is_not_an_empty_one(command):
    said = "error: -: file: got bad file descriptor, expected a readable file\n"
    assert _run(f"{PROGRAM} {command} <&-") == (1, said)


def test_a_locale_without_a_character_gets_it_escaped(tmp_path):
    log = tmp_path / "log.jsonl"
    log.write_text('{"model": "é…😀", "usage": {"prompt_tokens": 3, "completion_tokens": 1}}\n')
    command = f"{PROGRAM} usage normalise --format openai.chat {log} --json >{tmp_path}/out"
    assert _run(command, PYTHONIOENCODING="ascii") == (0, "")
    assert json.loads((tmp_path / "out").read_bytes())["model"] == "é…😀"
    assert _run(f"{PROGRAM} serve --help >{tmp_path}/out", PYTHONIOENCODING="ascii") == (0, "")
    assert b"PREFIX_CACHE_RELEASE_TEMPLATE, \\u2026" in (tmp_path / "out").read_bytes()


def test_a_file_name_that_is_no_text_can_be_told(tmp_path):
    file = os.fsencode(tmp_path) + b"/\xff.jsonl"
    Path(os.fsdecode(file)).write_bytes((ROOT / LOG).read_bytes())
    done = subprocess.run(
        [sys.executable, "-m", "prefix_cache_exporter", "check", "log", "openai.chat", file],
        capture_output=True,
        check=False,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.endswith(b"/\\udcff.jsonl: 100 ok\n")


def test_what_fails_to_be_read_is_not_escaped():
    with pytest.raises(UnicodeDecodeError):
        streams.escaped(UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"))


def test_output_that_fails_inside_a_command_is_told_as_such(monkeypatch, capsys, tmp_path):
    def full(_):
        raise streams.OutputError(OSError(28, "No space left on device"))

    with (tmp_path / "out").open("w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(cli, "_run", full)
        assert cli.run(["--version"]) == 1
    assert capsys.readouterr().err == (
        "error: standard output: got no space left on device, expected one that takes what is written\n"
    )
