from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Protocol

from prefix_cache_exporter.logs import RateLimit, fields

if TYPE_CHECKING:
    from collections.abc import Callable

_log = logging.getLogger(__name__)

RETRY_SECONDS = 5.0
"""After an error of our own, how long a worker waits: the next try may find another world."""


class Worker(Protocol):
    """Something that works in a thread of its own until it is told to end."""

    @property
    def name(self) -> str:
        """Which worker, in logs and in `internal_errors`."""

    @property
    def caught_up(self) -> bool:
        """Whether everything that was there at the start has been counted."""

    def start(self) -> None:
        """Begins to work."""

    def drain(self) -> None:
        """Asks for the rest to be done, and then for the end."""

    def stop(self) -> None:
        """Asks for the end now. A step in progress is finished."""

    def join(self, timeout: float | None = None) -> bool:
        """Waits for the end. Returns whether it has come."""


class Steps(Protocol):
    """The work itself, in steps."""

    @property
    def caught_up(self) -> bool:
        """Whether everything that was there at the start has been counted."""

    def step(self, *, draining: bool) -> float | None:
        """Does one step; returns the seconds until the next, or None where there will never be more to do."""


class Loop:
    """A worker that takes one step after another. An unexpected exception is counted and survived.

    Args:
        name: of the worker.
        steps: the work.
        on_error: told the worker's name when a step fell over.
    """

    def __init__(self, name: str, steps: Steps, on_error: Callable[[str], None]) -> None:
        self._name, self._steps, self._on_error = name, steps, on_error
        self._wake = threading.Event()
        self._draining = self._stopping = False
        self._complaints = RateLimit()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def name(self) -> str:
        """Which worker."""
        return self._name

    @property
    def caught_up(self) -> bool:
        """Whether the work says so, or has ended."""
        return self._steps.caught_up or not self._thread.is_alive()

    def start(self) -> None:
        """Begins to work."""
        self._thread.start()

    def drain(self) -> None:
        """Wakes the worker up to do the rest."""
        self._draining = True
        self._wake.set()

    def stop(self) -> None:
        """Ends after the step in progress."""
        self._stopping = True
        self._wake.set()

    def join(self, timeout: float | None = None) -> bool:
        """Waits for the end. Returns whether it has come."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopping:
            self._wake.clear()
            began = time.monotonic()
            pause = self._step()
            if pause is None:
                break
            self._wake.wait(max(0.0, pause - (time.monotonic() - began)))
        close = getattr(self._steps, "close", None)
        if close is not None:
            close()

    def _step(self) -> float | None:
        try:
            return self._steps.step(draining=self._draining)
        except Exception:  # noqa: BLE001  # a dead worker would leave the page standing still and looking alive
            self._on_error(self._name)
            held_back = self._complaints.passes(self._name)
            if held_back is not None:
                _log.exception("internal error, going on", extra=fields(worker=self._name, held_back=held_back))
            return RETRY_SECONDS
