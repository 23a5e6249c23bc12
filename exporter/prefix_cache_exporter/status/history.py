"""A short memory of counter totals, so that a page can speak of the last minutes and not only of all time."""

from __future__ import annotations

import threading
import time
from collections import deque
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from prefix_cache_exporter.ledger import Amount
    from prefix_cache_exporter.recorder import Recorder

Totals = dict[tuple[str, ...], "Amount"]
"""Counter totals by `(family name, source)`, or with the reason behind them by `(family name, source, reason)`."""


class History:
    """Totals every few seconds, for half an hour. Thread-safe."""

    def __init__(
        self,
        recorder: Recorder,
        *,
        every_seconds: float = 5.0,
        keep_seconds: float = 1800.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._recorder, self._every, self._clock = recorder, every_seconds, clock
        self._looks: deque[tuple[float, Totals]] = deque(maxlen=int(keep_seconds / every_seconds) + 1)
        self._lock = threading.Lock()

    def look(self) -> None:
        """Remembers the totals of now, unless the last look was a moment ago."""
        now = self._clock()
        with self._lock:
            if self._looks and now - self._looks[-1][0] < self._every:
                return
            self._looks.append((now, self._totals()))

    def total(self) -> Totals:
        """The totals of now."""
        return self._totals()

    def increase(self, seconds: float) -> Totals:
        """How much each total has grown over the last `seconds`, as far as memory reaches back."""
        now, totals = self._clock(), self._totals()
        with self._lock:
            looks = [found for at, found in self._looks if now - at <= seconds + self._every / 2]
        return grown(looks[0] if looks else totals, totals)

    def steps(self, count: int, seconds: float) -> list[Totals]:
        """Increases over `count` equal steps that end now, oldest first; steps before the first look are empty."""
        now, totals = self._clock(), self._totals()
        with self._lock:
            looks = [*self._looks, (now, totals)]
        edges = [self._at(looks, now - seconds * (count - place) / count) for place in range(count)]
        return [
            grown(before, after) if before is not None and after is not None else {}
            for before, after in pairwise([*edges, totals])
        ]

    @staticmethod
    def _at(looks: list[tuple[float, Totals]], when: float) -> Totals | None:
        """The totals of the last look at or before a time; None before the first."""
        found = None
        for at, totals in looks:
            if at > when:
                break
            found = totals
        return found

    def _totals(self) -> Totals:
        return {**self._recorder.totals(("source",)), **self._recorder.totals(("source", "reason"))}


def grown(before: Mapping[tuple[str, ...], Amount], after: Mapping[tuple[str, ...], Amount]) -> Totals:
    """After less before; a total that was not there before has grown from 0."""
    return {name: amount - before.get(name, 0) for name, amount in after.items()}
