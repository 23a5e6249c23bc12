"""Standard input, which outlives whoever follows it."""

from __future__ import annotations

from prefix_cache_exporter.usage.contents import Pipe
from prefix_cache_exporter.usage.log import Log
from prefix_cache_exporter.usage.positions import Position


class Piped:
    """A pipe for one follower after the other.

    Where a reload replaces a source's worker, what its predecessor has read of a line and not used is nowhere else.

    Args:
        fd: its descriptor.

    Attributes:
        key: the number of the log that it is, from the first follower on.
    """

    def __init__(self, fd: int = 0) -> None:
        self._fd = fd
        self._log: Log | None = None
        self.key: int | None = None

    def take(self, limit: int) -> Log | None:
        """The log, where its last reader left off; None where one has ended it, or reads it still.

        Args:
            limit: longest line in bytes.
        """
        log, self._log = self._log, None
        if log is not None:
            log.limit(limit)
        elif self.key is None:
            log = Log(Pipe(self._fd), Position(-1, -1), limit)
        return log

    def leave(self, log: Log) -> None:
        """Leaves the log to whoever comes next."""
        self._log = log


PROCESS = Piped()
"""The standard input of this process."""
