from __future__ import annotations

import io
import re
import signal
import socket

import pytest

from prefix_cache_exporter.__main__ import main
from prefix_cache_exporter.demo import replayed
from prefix_cache_exporter.demo.recording import NoRecordingError, Recording, Replay, load_recording
from prefix_cache_exporter.demo.replayed import StandstillError, tell
from support.site import request

pytestmark = pytest.mark.usefixtures("signal_handlers")


@pytest.fixture
def short():
    """The first steps of the recorded run."""
    recording = load_recording("0.32.0")
    return Recording(recording.version, recording.pages[:4])


def test_each_step_says_both_sides_of_the_ratio(short):
    out = io.StringIO()
    tell(short, 0, out, pause=lambda _: None)
    text = re.sub(r"127\.0\.0\.1:\d+", "ADDRESS", out.getvalue())
    assert text == (
        "A server of vLLM 0.32.0 as it was recorded, replayed step by step at http://ADDRESS\n"
        "The exporter beside it: http://ADDRESS/metrics\n\n"
        "step                         prompt tokens   cached   population hit ratio so far: cached / prompt tokens\n"
        "00_start                                +0       +0   no traffic yet\n"
        "01_cold                               +474       +0   0 / 474 = 0.0%\n"
        "02_same                               +474     +384   384 / 948 = 40.5%\n"
        "03_same_prefix_new_user               +479     +384   768 / 1,427 = 53.8%\n"
        "\nhttp://ADDRESS stays open for 0 s; Ctrl-C ends it.\n"
    )


def test_a_signal_ends_it_before_its_time(short, monkeypatch):
    out = io.StringIO()
    monkeypatch.setattr(out, "flush", lambda: "Ctrl-C" in out.getvalue() and signal.raise_signal(signal.SIGINT))
    tell(Recording(short.version, short.pages[:1]), 3600, out)
    assert "stays open for 3600 s" in out.getvalue()


def test_a_default_port_that_is_taken_is_another(short, monkeypatch):
    out = io.StringIO()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(replayed, "DEFAULT_PORT", port)
        tell(Recording(short.version, short.pages[:1]), 0, out)
    assert f":{port}/metrics" not in out.getvalue()
    assert "00_start" in out.getvalue()


def test_an_exporter_that_does_not_poll_is_said(short, monkeypatch):
    monkeypatch.setattr(replayed, "_PATIENCE_SECONDS", 0)
    with pytest.raises(StandstillError, match="did not poll step 00_start within 0 s"):
        tell(short, 0, io.StringIO())


def test_the_replayed_server(short):
    replay = Replay(short)
    app = replay.app()
    assert request(app, "/version")[2] == b'{"version": "0.32.0"}'
    assert not replay.wait_for_polls(1, 0)
    assert request(app, "/metrics")[2] == short.pages[0][1]
    assert replay.wait_for_polls(1, 0)
    assert [replay.advance() for _ in range(4)] == [True, True, True, False]
    assert (replay.step, request(app, "/metrics")[2]) == ("03_same_prefix_new_user", short.pages[3][1])


def test_without_a_checkout_it_says_what_is_missing(tmp_path, capsys):
    with pytest.raises(NoRecordingError, match="part of the repository and not of the installed package"):
        load_recording("0.32.0", tmp_path)
    assert main(["demo", "--recording=9.9.9", "--seconds=0"]) == 1
    assert "run `make demo` in a checkout" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["soon", "-1", "nan", "inf"])
def test_a_wrong_time_is_a_wrong_command_line(text, monkeypatch, capsys):
    monkeypatch.setenv("DEMO_SECONDS", text)
    assert main(["demo"]) == 2
    assert capsys.readouterr().err == f"error: environment: DEMO_SECONDS: got {text}, expected a number of seconds\n"
    assert main(["demo", f"--seconds={text}"]) == 2
    assert f"argument --seconds: invalid number of seconds value: '{text}'" in capsys.readouterr().err
