"""Every command as a person meets it: one file per case, with the command, its files, and all that it answers.

`REFRESH_GOLDEN=1 pytest tests/cli/test_golden.py` writes what is answered now; read the diff before you commit it.

A case begins with the command, in shell quoting. Then come `-- name --` sections: files of the folder that it runs
in, and `exit`, `stdout` and `stderr`. A section `until` names text on standard error after which SIGTERM is sent. What
differs from run to run or from machine to machine stands as {root}, {here}, {port}, {time} and {version}.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from prefix_cache_exporter import __version__, cli

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "golden"
CASES = sorted(path.stem for path in GOLDEN.glob("*.txt"))
_HEAD = re.compile(r"^-- (\S+) --$", re.MULTILINE)
_ANSWERS = ("exit", "stdout", "stderr")
_PATIENCE = 60.0


class Case:
    def __init__(self, text: str) -> None:
        command, *rest = _HEAD.split(text)
        self.command = command.strip()
        self.sections = dict(zip(rest[::2], (body.removeprefix("\n") for body in rest[1::2]), strict=True))

    @property
    def answer(self) -> dict[str, str]:
        return {name: self.sections.get(name, "") for name in _ANSWERS}

    def with_answer(self, answer: dict[str, str]) -> str:
        kept = {name: body for name, body in self.sections.items() if name not in _ANSWERS}
        return f"{self.command}\n" + "".join(
            f"-- {name} --\n{body}" for name, body in {**kept, **answer}.items() if body or name in kept
        )


def run(case: Case, folder: Path) -> dict[str, str]:
    for name, body in case.sections.items():
        if name not in {*_ANSWERS, "until"}:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(body, "utf-8")
    program, *arguments = shlex.split(case.command.replace("{root}", str(ROOT)))
    assert program == "prefix-cache-exporter"
    process = subprocess.Popen(
        [sys.executable, "-m", "prefix_cache_exporter", *arguments],
        cwd=folder,
        env={**os.environ, "COLUMNS": "100", "PYTHONUTF8": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    guard = threading.Timer(_PATIENCE, process.kill)
    guard.start()
    heard = ""
    try:
        if "until" in case.sections:
            awaited = case.sections["until"].strip()
            while awaited not in heard and (line := process.stderr.readline()):
                heard += line
            process.send_signal(signal.SIGTERM)
        out, err = process.communicate()
    finally:
        guard.cancel()
    answer = {"exit": f"{process.returncode}\n", "stdout": out, "stderr": heard + err}
    return {name: _settled(body, folder) for name, body in answer.items()}


def _settled(text: str, folder: Path) -> str:
    """The text without what differs from run to run; it ends with a newline, as all of a file's sections do."""
    text = text.replace(str(ROOT), "{root}").replace(str(folder), "{here}")
    text = re.sub(r"127\.0\.0\.1:(?!9\b)\d+", "127.0.0.1:{port}", text)
    text = re.sub(r"\bts=\S+", "ts={time}", text).replace(__version__, "{version}")
    return text if text.endswith("\n") or not text else f"{text}\n"


@pytest.mark.parametrize("name", CASES)
def test_a_command_answers_as_written(name, tmp_path):
    file = GOLDEN / f"{name}.txt"
    case = Case(file.read_text("utf-8"))
    answer = run(case, tmp_path)
    if os.environ.get("REFRESH_GOLDEN"):
        file.write_text(case.with_answer(answer), "utf-8")
    assert case.answer == answer


def commands() -> set[str]:
    """Every command that can be run, like `check config`."""

    def within(parser, words):
        inner = [
            action for action in parser._actions if hasattr(action, "choices") and isinstance(action.choices, dict)
        ]
        if not inner:
            yield " ".join(words)
        for name, one in inner[0].choices.items() if inner else ():
            yield from within(one, (*words, name))

    return set(within(cli.parser(), ()))


@pytest.mark.parametrize("command", sorted(commands()))
def test_every_command_has_a_case_that_works_and_one_that_does_not(command):
    cases = [Case((GOLDEN / f"{name}.txt").read_text("utf-8")) for name in CASES]
    codes = {
        case.answer["exit"].strip()
        for case in cases
        if f"{case.command} ".startswith(f"prefix-cache-exporter {command} ")
    }
    assert "0" in codes
    assert codes - {"0"}


def test_a_golden_file_is_written_as_it_is_read():
    for name in CASES:
        text = (GOLDEN / f"{name}.txt").read_text("utf-8")
        case = Case(text)
        assert case.with_answer(case.answer) == text
