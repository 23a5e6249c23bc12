from __future__ import annotations

import logging
import threading

from prefix_cache_exporter.serve import loop
from prefix_cache_exporter.serve.loop import Loop

WAIT = 10


class Steps:
    """Steps that a test scripts: a number is a pause, an exception is raised, None is the end."""

    def __init__(self, *script):
        self.script, self.seen, self.caught_up = list(script), [], False
        self.taken = threading.Semaphore(0)

    def step(self, *, draining):
        self.seen.append(draining)
        self.taken.release()
        what = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(what, Exception):
            raise what
        return what


def test_it_ends_when_there_will_never_be_more_to_do():
    steps = Steps(0, 0, None)
    worker = Loop("engine vllm", steps, lambda _: None)
    worker.start()
    assert worker.join(WAIT)
    assert (worker.name, steps.seen, worker.caught_up) == ("engine vllm", [False, False, False], True)


def test_draining_wakes_it_and_lets_it_end_by_itself():
    steps = Steps(3600, 0, 0, None)
    worker = Loop("engine vllm", steps, lambda _: None)
    worker.start()
    assert steps.taken.acquire(timeout=WAIT)
    assert not worker.caught_up
    assert not worker.join(0)
    worker.drain()
    assert worker.join(WAIT)
    assert steps.seen == [False, True, True, True]


def test_stopping_wakes_it_and_takes_no_further_step():
    steps = Steps(3600)
    worker = Loop("engine vllm", steps, lambda _: None)
    worker.start()
    assert steps.taken.acquire(timeout=WAIT)
    worker.stop()
    assert worker.join(WAIT)
    assert steps.seen == [False]


def test_an_unexpected_exception_is_counted_logged_once_and_survived(monkeypatch, caplog):
    monkeypatch.setattr(loop, "RETRY_SECONDS", 0)
    steps = Steps(RuntimeError("a prompt"), RuntimeError("a prompt"), KeyError("x"), None)
    errors = []
    worker = Loop("engine vllm", steps, errors.append)
    with caplog.at_level(logging.ERROR):
        worker.start()
        assert worker.join(WAIT)
    assert errors == ["engine vllm"] * 3
    assert [record.getMessage() for record in caplog.records] == ["internal error, going on"]
