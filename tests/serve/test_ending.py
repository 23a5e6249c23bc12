from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from prefix_cache_exporter.serve.ending import Event, Signals, drain


class Worker:
    """Ends some looks after it was asked to drain; never where `looks` is None."""

    def __init__(self, looks=0):
        self.looks, self.asked = looks, []

    def drain(self):
        self.asked.append("drain")

    def stop(self):
        self.asked.append("stop")

    def join(self, timeout=None):
        if self.looks is None:
            return False
        self.looks -= 1
        return self.looks < 0


class Ticking:
    """A clock that moves by a second whenever it is read."""

    def __init__(self):
        self.now = 0

    def __call__(self):
        self.now += 1
        return self.now


def test_everybody_ends_by_themselves():
    workers = [Worker(0), Worker(2)]
    assert drain(workers, Signals(), 3600) == "done"
    assert [worker.asked for worker in workers] == [["drain"], ["drain"]]


def test_who_hangs_is_stopped_when_the_time_is_up():
    workers = [Worker(0), Worker(None)]
    assert drain(workers, Signals(), 3, clock=Ticking()) == "grace"
    assert [worker.asked for worker in workers] == [["drain"], ["drain", "stop"]]


def test_no_time_at_all():
    assert drain([Worker(None)], Signals(), 0) == "grace"


def test_a_second_signal_ends_at_once_and_a_reload_does_not():
    signals = Signals()
    signals.put(Event.RELOAD)
    signals.put(Event.END)
    hanging = Worker(None)
    assert drain([hanging], signals, 3600) == "signal"
    assert hanging.asked == ["drain", "stop"]


@pytest.mark.parametrize(
    ("number", "event"), [(signal.SIGTERM, Event.END), (signal.SIGINT, Event.END), (signal.SIGHUP, Event.RELOAD)]
)
@pytest.mark.usefixtures("signal_handlers")
def test_signals_become_events(number, event):
    signals = Signals()
    signals.install()
    os.kill(os.getpid(), number)
    assert signals.wait(10) is event
    assert signals.wait(0) is None


@pytest.mark.usefixtures("signal_handlers")
@pytest.mark.parametrize(("number", "event"), [(signal.SIGTERM, Event.END), (signal.SIGHUP, Event.RELOAD)])
def test_a_signal_that_another_thread_gets_is_not_slept_through(number, event):
    """The system chooses the thread; only the main one may run the handler, and it must look up from its wait."""
    signals = Signals()
    signals.install()

    def take():
        time.sleep(0.1)  # until the main thread waits
        signal.pthread_kill(threading.get_ident(), number)
        time.sleep(2)

    thread = threading.Thread(target=take)
    thread.start()
    assert signals.wait() is event
    thread.join()
