"""How far a long input has been read, on standard error, only where a person is looking."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable

_EVERY = 0.2
_WIDTH = 30
_MB = 1_000_000


class Progress:
    """A bar that redraws itself at most five times a second; silent where the stream is no terminal.

    Args:
        stream: where to draw.
        total: bytes that there are, None where that is not known (standard input).
        patience: nothing is drawn before so many seconds: short runs need no bar.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        stream: TextIO,
        total: int | None,
        *,
        patience: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream, self._total, self._clock = stream, total, clock
        self._started = clock()
        self._next = self._started + patience if stream.isatty() else float("inf")
        self._drawn = False

    def show(self, done: int, lines: int) -> None:
        """Tells how many bytes and lines have been read."""
        now = self._clock()
        if now < self._next:
            return
        self._next = now + _EVERY
        self._drawn = True
        rate = lines / max(now - self._started, 1e-9)
        if self._total:
            share = min(done / self._total, 1.0)
            bar = "#" * round(share * _WIDTH)
            where = f"[{bar:<{_WIDTH}}] {share:4.0%} of {self._total / _MB:,.0f} MB"
        else:
            where = f"{done / _MB:,.0f} MB"
        self._stream.write(f"\r{where}, {lines:,} lines, {rate:,.0f} lines/s\033[K")
        self._stream.flush()

    def close(self) -> None:
        """Wipes the bar away."""
        if self._drawn:
            self._stream.write("\r\033[K")
            self._stream.flush()
