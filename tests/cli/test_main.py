from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from prefix_cache_exporter import __version__, cli
from prefix_cache_exporter.__main__ import main
from prefix_cache_exporter.cli import serve

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("arguments", "runs"),
    [
        ([], "serve"),
        (["--vllm=http://127.0.0.1:8000"], "serve"),
        (["--config.check"], "serve"),
        (["serve", "--log.level", "warn"], "serve"),
        (["check", "config", "x.yml"], "check"),
    ],
)
def test_serve_is_the_command_when_none_is_named(arguments, runs, monkeypatch):
    seen = []
    monkeypatch.setattr(serve, "_run", lambda args: seen.append(args.command) or 0)
    monkeypatch.setattr(serve, "_check", lambda args: seen.append(args.command) or 0)
    assert main(arguments) == 0
    assert seen == [runs]


def test_help_lists_every_command(capsys):
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    for name in cli.COMMANDS:
        assert f"\n    {name}" in out


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_has_help(name, capsys):
    assert main([name, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"usage: prefix-cache-exporter {name}")


@pytest.mark.parametrize("arguments", [["--version"], ["serve", "--version"]])
def test_version(arguments, capsys, monkeypatch):
    monkeypatch.setenv("PREFIX_CACHE_EXPORTER_REVISION", "1a2b3c")
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"prefix-cache-exporter {__version__} (revision 1a2b3c, Python 3.")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["frobnicate"], "invalid choice: 'frobnicate'"),
        (["serve", "--frobnicate"], "unrecognized arguments: --frobnicate"),
        (["serve", "--vll", "x"], "unrecognized arguments: --vll x"),
        (["--shutdown.grace-seconds=-1"], "invalid number of seconds value: '-1'"),
        (["--shutdown.grace-seconds=inf"], "invalid number of seconds value: 'inf'"),
        (["--log.level=loud"], "invalid choice: 'loud'"),
        (["check"], "the following arguments are required: WHAT"),
    ],
)
def test_a_wrong_command_line_is_2(arguments, message, capsys):
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["check", "config", "{file}"], ["--config.check", "--config.file={file}"]])
def test_checking_a_configuration(arguments, tmp_path, capsys):
    file = tmp_path / "config.yml"
    arguments = [argument.replace("{file}", str(file)) for argument in arguments]
    file.write_text("engines: [{name: a, url: 'http://127.0.0.1:9'}]")
    assert main(arguments) == 0
    assert capsys.readouterr().out == "the configuration is good\n"
    file.write_text("engine: []")
    assert main(arguments) == 1
    out, err = capsys.readouterr()
    assert (out, err.startswith(f"error: {file}: document: got the unknown key engine, expected one of ")) == ("", True)
    file.write_text("engines: [{name: a, url: 'http://127.0.0.1:9', name_style: nobodys}]")
    assert main(arguments) == 1
    expected = f"error: {file}: engines[0].name_style: got nobodys, expected one of auto, native"
    assert capsys.readouterr().err.startswith(expected)


def test_flags_are_the_file_in_short(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    arguments = [
        "--vllm=a=http://127.0.0.1:8000",
        "--vllm=http://127.0.0.1:8001",
        "--engine-version=0.32.0",
        "--template=support",
        "--template-revision=r42",
        "--release.file=release.yaml",
        "--state.path=state.db",
        "--web.telemetry-path=/m",
        "--web.external-url=https://p.example/x",
        "--web.route-prefix=/y",
        "--shutdown.grace-seconds=3",
    ]
    args = cli.parser().parse_args(["serve", *arguments])
    assert serve._flags(args) == {
        "engines": [
            {"name": "a", "url": "http://127.0.0.1:8000", "engine_version": "0.32.0"},
            {"name": "127.0.0.1:8001", "url": "http://127.0.0.1:8001", "engine_version": "0.32.0"},
        ],
        "release": {"file": f"{tmp_path}/release.yaml", "template": "support", "template_revision": "r42"},
        "state": {"path": f"{tmp_path}/state.db"},
        "web": {"telemetry_path": "/m", "external_url": "https://p.example/x", "route_prefix": "/y"},
        "shutdown": {"grace_seconds": 3},
    }
    assert main([*arguments, "--config.check"]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--template=support"],
            "--template: got no template_revision, expected template and template_revision together",
        ),
        (["--vllm=127.0.0.1:8000"], "--vllm: got another address, expected an http:// or https:// address of a host"),
        (
            ["--vllm=http://a:1", "--vllm=b:1"],
            "--vllm (number 2): got another address, expected an http:// or https:// address of a host",
        ),
        (
            ["--vllm=http://a:1", "--engine-version=abc"],
            '--engine-version: got "abc", expected a version like 0.32.0, in quotes',
        ),
        (
            ["--vllm=http://a:1", "--engine-version=0.1.0"],
            "--engine-version: got 0.1.0, expected a version that a map describes, 0.7.3 or newer",
        ),
        (["--vllm=http://[::1"], "--vllm: got another address, expected an http:// or https:// address of a host"),
        (
            ["--vllm=http://a:1", "--vllm=http://a]b:1"],
            "--vllm (number 2): got another address, expected an http:// or https:// address of a host",
        ),
        (
            ["--vllm=a=http://x", "--vllm=a=http://y"],
            '--vllm (number 2): got "a", expected another name than --vllm has',
        ),
        (
            ["--web.external-url=http://[::1"],
            "--web.external-url: got another address, expected an http:// or https:// address of a host",
        ),
        (["--web.route-prefix=//x"], '--web.route-prefix: got "//x", expected a path that starts with one /'),
        (["--engine-version=0.32.0"], "--engine-version: got one without a server, expected --vllm beside it"),
        (["--web.listen-address=:x"], "--web.listen-address: got :x, expected `:port`, `host:port` or `[ipv6]:port`"),
        (
            ["--web.telemetry-path=/config"],
            '--web.telemetry-path: got "/config", expected a path that is not another page\'s',
        ),
    ],
)
def test_a_flag_that_makes_no_sense_is_named_and_is_2(arguments, message, capsys):
    assert main([*arguments, "--config.check"]) == 2
    assert capsys.readouterr().err == f"error: command line: {message}\n"


def test_a_reader_that_goes_away_is_no_error():
    command = f"{sys.executable} -m prefix_cache_exporter serve --help | head -c 1"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, b"")


def test_interrupted_work_is_1(monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(serve, "_check", interrupted)
    assert main(["check", "config", "x.yml"]) == 1


def test_a_closed_pipe_is_0(monkeypatch):
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)

        def print_much(_):
            raise BrokenPipeError

        monkeypatch.setattr(serve, "_check", print_much)
        assert main(["check", "config", "x.yml"]) == 0


def test_checking_a_configuration_tells_every_mistake_at_once(tmp_path, capsys):
    file = tmp_path / "config.yml"
    file.write_text("web: {listen_address: [x]}\nengines: [{name: a, url: 'ftp://x'}, {name: a, url: 'http://y?z'}]\n")
    assert main(["check", "config", str(file)]) == 1
    assert [line.split(": got")[0] for line in capsys.readouterr().err.splitlines()] == [
        f"error: {file}: web.listen_address[0]",
        f"error: {file}: engines[0].url",
        f"error: {file}: engines[1].name",
        f"error: {file}: engines[1].url",
    ]
