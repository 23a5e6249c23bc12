"""Finished logs to settled records, through the same reader, normaliser and merger that `serve` uses."""

from __future__ import annotations

import os
import select
import stat
import sys
from collections import Counter
from typing import TYPE_CHECKING

from prefix_cache_exporter.usage.contents import Gzip, Pipe, UnreadableError, open_content
from prefix_cache_exporter.usage.log import Log, ReplacedError
from prefix_cache_exporter.usage.positions import Position
from prefix_cache_exporter.usage.record import Duplicate, Fragment, Quarantined, Skipped, UsageRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from prefix_cache_exporter.usage.contents import Content
    from prefix_cache_exporter.usage.merge import Merger
    from prefix_cache_exporter.usage.normaliser import Normaliser

STANDARD_INPUT = "-"


class Reading:
    """Reads logs once, front to end.

    Args:
        normaliser: of the format.
        merger: likewise.
        line_limit: longest line in bytes; a longer one is lost and counted.
        progress: called with bytes and lines read so far.

    Attributes:
        lines: lines read.
        lost: lines that gave no record though they should have, by reason.
        ignored: lines that are no usage records by the map's own rule, by reason.
        quarantined: records that could not be decided, by reason.
        anomalies: oddities of records, by kind.
        qualities: settled records by quality.
        duplicates: repeats of settled records.
        unreadable: files that could not be read to their end, with the reason.
    """

    def __init__(
        self,
        normaliser: Normaliser,
        merger: Merger,
        *,
        line_limit: int = 4 << 20,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self._normaliser, self._merger, self._limit = normaliser, merger, line_limit
        self._progress = progress
        self.lines = self.bytes = self.duplicates = 0
        self.lost: Counter[str] = Counter()
        self.ignored: Counter[str] = Counter()
        self.quarantined: Counter[str] = Counter()
        self.anomalies: Counter[str] = Counter()
        self.qualities: Counter[str] = Counter()
        self.unreadable: dict[str, str] = {}

    def records(self, paths: Iterable[str]) -> Iterator[UsageRecord]:
        """Every settled record of the logs, in the order in which they settle."""
        for path in paths:
            for line in self._lines(path):
                for said in self._normaliser.feed(line):
                    if isinstance(said, Fragment):
                        yield from self._settled(self._merger.add(said, 0.0, path))
                    else:
                        self._skip(said)
            yield from self._settled(self._merger.end(path))
        yield from self._settled(self._merger.settle(0.0, everything=True))

    def _settled(self, outcomes: Iterable[UsageRecord | Quarantined | Duplicate | Skipped]) -> Iterator[UsageRecord]:
        for outcome in outcomes:
            if isinstance(outcome, UsageRecord):
                self.qualities[outcome.quality] += 1
                self.anomalies.update(outcome.anomalies)
                yield outcome
            elif isinstance(outcome, Quarantined):
                self.quarantined[outcome.reason] += 1
            elif isinstance(outcome, Duplicate):
                self.duplicates += 1
            else:
                self._skip(outcome)

    def _skip(self, skipped: Skipped) -> None:
        (self.lost if skipped.kind == "lost" else self.ignored)[skipped.reason] += 1

    def _lines(self, path: str) -> Iterator[bytes]:
        try:
            content, identity = _open(path)
        except UnreadableError as error:
            self.unreadable[path] = error.reason
            return
        try:
            log = Log(content, Position(*identity), self._limit)
            while True:
                piece = log.advance()
                if piece is None and isinstance(content, Pipe) and not content.complete:
                    select.select([sys.stdin], [], [])
                    continue
                last = piece is None
                if piece is None:
                    piece = log.finish()
                self.lines += len(piece.lines)
                self.bytes += piece.size
                self.lost.update(piece.lost)
                yield from piece.lines
                if self._progress is not None:
                    self._progress(self.bytes, self.lines)
                if last:
                    if isinstance(content, Gzip) and not content.complete:
                        self.unreadable[path] = "truncated"
                    return
        except UnreadableError as error:
            self.unreadable[path] = error.reason
        except ReplacedError:
            self.unreadable[path] = "replaced"
        finally:
            content.close()


def _open(path: str) -> tuple[Content, tuple[int, int]]:
    fd = os.dup(sys.stdin.fileno()) if path == STANDARD_INPUT else os.open(path, os.O_RDONLY)
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        return Pipe(fd), (-1, -1)
    return open_content(fd), (status.st_dev, status.st_ino)


def size_of(paths: Iterable[str]) -> int | None:
    """Bytes that there are to read; None where that is not known beforehand."""
    total = 0
    for path in paths:
        if path == STANDARD_INPUT:
            return None
        total += os.stat(path).st_size  # noqa: PTH116  # the path may be `-`, which is no Path
    return total
