"""Finished logs to settled records, through the same reader, normaliser and merger that `serve` uses."""

from __future__ import annotations

import os
import select
import stat
import sys
from collections import Counter
from typing import TYPE_CHECKING

from prefix_cache_exporter.usage.contents import Gzip, Pipe, UnreadableError, open_content
from prefix_cache_exporter.usage.log import Log, Piece, ReplacedError
from prefix_cache_exporter.usage.positions import Position
from prefix_cache_exporter.usage.record import Duplicate, Quarantined, Skipped, UsageRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from prefix_cache_exporter.usage.contents import Content
    from prefix_cache_exporter.usage.intake import Group as Gathered
    from prefix_cache_exporter.usage.intake import Intake
    from prefix_cache_exporter.usage.merge import Outcome

STANDARD_INPUT = "-"
_TOGETHER = 4 << 20


class Reading:
    """Reads logs once, front to end.

    Args:
        intake: reads lines of the format.
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
        intake: Intake,
        *,
        line_limit: int = 4 << 20,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self._intake, self._limit = intake, line_limit
        self._progress = progress
        self.lines = self.bytes = self.duplicates = 0
        self.lost: Counter[str] = Counter()
        self.ignored: Counter[str] = Counter()
        self.quarantined: Counter[str] = Counter()
        self.anomalies: Counter[str] = Counter()
        self.qualities: Counter[str] = Counter()
        self.unreadable: dict[str, str] = {}

    def groups(self, paths: Iterable[str]) -> Iterator[Gathered | UsageRecord]:
        """Every settled record of the logs: plain ones gathered by what they have in common, others one by one."""
        for path in paths:
            for lines in self._lines(path):
                plain, others = self._intake.gather(lines, 0.0, path)
                for group in plain:
                    self.qualities[group.sample.quality] += len(group.rows)
                    yield group
                yield from self._settled(others)
            yield from self._settled(self._intake.merger.end(path))
        yield from self._settled(self._intake.settle(0.0, everything=True))

    def _settled(self, outcomes: Iterable[Outcome]) -> Iterator[UsageRecord]:
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

    def _lines(self, path: str) -> Iterator[list[bytes]]:
        """Lines by the thousand: the more are taken in together, the less each one costs."""
        held: list[bytes] = []
        size = 0
        for piece in self._pieces(path):
            held += piece.lines
            size += piece.size
            if size >= _TOGETHER:
                yield held
                held, size = [], 0
        if held:
            yield held

    def _pieces(self, path: str) -> Iterator[Piece]:
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
                yield piece
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
