from __future__ import annotations

import socket
import sys
import time

from prefix_cache_exporter.demo import programs
from prefix_cache_exporter.demo.programs import Program, find, free_port


def test_the_first_installed_name_is_found():
    assert find(["no-such-program-here", "sh"]).endswith("/sh")
    assert find(["no-such-program-here"]) is None


def test_a_free_port_can_be_listened_on():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", free_port()))


def test_a_program_is_ended_politely(tmp_path):
    program = Program([sys.executable, "-c", "print('up', flush=True); input()"], tmp_path / "log")
    while program.ended is None:  # it has no input to wait for
        time.sleep(0.01)
    program.stop()

    assert program.ended == 1
    assert (tmp_path / "log").read_text("utf-8").startswith("up\n")


def test_a_program_that_does_not_listen_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(programs, "_PATIENCE_SECONDS", 0.1)
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
    program = Program([sys.executable, "-c", deaf], tmp_path / "log")
    while not (tmp_path / "log").read_bytes():
        time.sleep(0.01)

    program.stop()

    assert program.ended == -9
