from __future__ import annotations

import math
import queue
import signal
import time
from enum import Enum, auto
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import FrameType

    from .loop import Worker

_LOOK_SECONDS = 0.05
_DEAF_SECONDS = 0.5
"""How long a wait may last at a time.

The system may give a signal to any thread, and Python runs its handler in the main one, which then goes on waiting: an
endless wait has been seen to sleep through SIGTERM for good.
"""


class Event(Enum):
    """What the world asks of the process."""

    END = auto()
    RELOAD = auto()


class Signals:
    """Signals as events, for one thread to wait for."""

    def __init__(self) -> None:
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()

    def install(self) -> None:
        """Takes SIGTERM and SIGINT as the wish to end, SIGHUP as the wish to reload. Main thread only."""
        for number, event in ((signal.SIGTERM, Event.END), (signal.SIGINT, Event.END), (signal.SIGHUP, Event.RELOAD)):
            signal.signal(number, self._taker(event))

    def put(self, event: Event) -> None:
        """As if a signal had come."""
        self._events.put(event)

    def wait(self, seconds: float = math.inf) -> Event | None:
        """The next event; None where none came in time."""
        deadline = time.monotonic() + seconds
        while True:
            left = deadline - time.monotonic()
            try:
                return self._events.get(timeout=max(0.0, min(left, _DEAF_SECONDS)))
            except queue.Empty:
                if left <= _DEAF_SECONDS:
                    return None

    def _taker(self, event: Event) -> Callable[[int, FrameType | None], None]:
        return lambda _number, _frame: self._events.put(event)


def drain(
    workers: Iterable[Worker], signals: Signals, seconds: float, clock: Callable[[], float] = time.monotonic
) -> str:
    """Lets workers do the rest of their work, for so long at most.

    Returns:
        Why it ended: `done`, `grace` where the time was up, `signal` where a second signal came.
    """
    left = list(workers)
    for worker in left:
        worker.drain()
    deadline = clock() + seconds
    outcome = "done"
    while left := [worker for worker in left if not worker.join(0)]:
        remaining = deadline - clock()
        if remaining <= 0:
            outcome = "grace"
            break
        if signals.wait(min(_LOOK_SECONDS, remaining)) is Event.END:
            outcome = "signal"
            break
    for worker in left:
        worker.stop()
    return outcome
