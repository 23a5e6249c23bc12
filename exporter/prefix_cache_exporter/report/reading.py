"""Finished logs to settled records, through the same reader, normaliser and merger that `serve` uses."""

from __future__ import annotations

import os
import select
import stat
import sys
from collections import Counter
from typing import TYPE_CHECKING, Final

from prefix_cache_exporter.usage.arrays import is_values
from prefix_cache_exporter.usage.contents import Gzip, Pipe, Plain, UnreadableError, open_content
from prefix_cache_exporter.usage.lane.blocks import lines_of
from prefix_cache_exporter.usage.log import Log, ReplacedError
from prefix_cache_exporter.usage.positions import LINES, Position, moved
from prefix_cache_exporter.usage.record import Duplicate, Quarantined, Skipped, UsageRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from prefix_cache_exporter.usage.contents import Content
    from prefix_cache_exporter.usage.intake import Group as Gathered
    from prefix_cache_exporter.usage.intake import Intake
    from prefix_cache_exporter.usage.lane.blocks import Blocks
    from prefix_cache_exporter.usage.lane.sums import Sums
    from prefix_cache_exporter.usage.pieces import Piece
    from prefix_cache_exporter.usage.record import Outcome

STANDARD_INPUT = "-"
BLOCK = 1 << 17
"""Bytes that are read at once: what stays in a processor's cache costs half of what does not."""
_TOGETHER = 1 << 20
"""Bytes of lines that are taken in together where they come one by one."""
_TOLD: Final = Skipped("ignored", "told_later")
"""A line without usage that waited for one with its id, which came in a block of plain lines."""


class Reading:
    """Reads logs once, front to end.

    Args:
        intake: reads lines of the format.
        blocks: reads whole blocks of plain lines of it.
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
        blocks: Blocks,
        *,
        line_limit: int = 4 << 20,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self._intake, self._blocks, self._limit = intake, blocks, line_limit
        self._progress = progress
        self.lines = self.bytes = self.duplicates = 0
        self.lost: Counter[str] = Counter()
        self.ignored: Counter[str] = Counter()
        self.quarantined: Counter[str] = Counter()
        self.anomalies: Counter[str] = Counter()
        self.qualities: Counter[str] = Counter()
        self.unreadable: dict[str, str] = {}

    def groups(self, paths: Iterable[str]) -> Iterator[Gathered | Sums | UsageRecord]:
        """Every settled record of the logs: plain ones gathered by what they have in common, others one by one."""
        for path in paths:
            for part in self._parts(path):
                if not isinstance(part, list) and self._blocks.able:
                    taken = self._blocks.take(part)
                    self.lines += taken.lines
                    self.duplicates += taken.repeats
                    yield from self._counted(taken.groups)
                    yield from self._summed(taken.sums)
                    yield from self._general(taken.odd, path)
                else:
                    lines = part if isinstance(part, list) else lines_of(part)
                    self.lines += len(lines)
                    yield from self._general(lines, path)
                if self._progress is not None:
                    self._progress(self.bytes, self.lines)
            yield from self._settled(self._intake.merger.end(path))
        settled = self._intake.settle(0.0, everything=True)
        yield from self._settled(_TOLD if self._blocks.repeats(outcome) else outcome for outcome in settled)
        yield from self._summed(self._blocks.sums())

    @property
    def summed_span(self) -> tuple[float, ...]:
        """The earliest and the latest time of all records that came as sums; nothing where none had one."""
        first, last = self._blocks.times.span
        return (first, last) if first <= last else ()

    def _summed(self, sums: Iterable[Sums]) -> Iterator[Sums]:
        for some in sums:
            self.qualities[some.sample.quality] += some.requests
            yield some

    def _counted(self, groups: Iterable[Gathered]) -> Iterator[Gathered]:
        for group in groups:
            self.qualities[group.sample.quality] += len(group.rows)
            yield group

    def _general(self, lines: list[bytes], path: str) -> Iterator[Gathered | UsageRecord]:
        """Lines by the general way; its memory of ids and that of the blocks are held together here."""
        if not self._blocks.able:
            plain, others = self._intake.gather(lines, 0.0, path)
            yield from self._counted(plain)
            yield from self._settled(others)
            return
        for outcome in self._intake.take(lines, 0.0, path):
            yield from self._settled((Duplicate() if self._blocks.repeats(outcome) else outcome,))

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

    def _parts(self, path: str) -> Iterator[bytes | memoryview | list[bytes]]:
        """A log in blocks of whole lines as they stand, or in lists of lines where they must be looked for.

        A block is gone when the next one is asked for.
        """
        held: list[bytes] = []
        size = 0
        for piece in self._pieces(path):
            if isinstance(piece, memoryview):
                self.bytes += len(piece)
                yield piece
                continue
            self.bytes += piece.size
            self.lost.update(piece.lost)
            held += piece.lines
            size += piece.size
            if size >= (BLOCK if self._blocks.able else _TOGETHER):
                yield _joined(held)
                held, size = [], 0
        if held:
            yield _joined(held)

    def _pieces(self, path: str) -> Iterator[memoryview | Piece]:
        try:
            content, position = _open(path)
        except UnreadableError as error:
            self.unreadable[path] = error.reason
            return
        try:
            offset = 0
            if isinstance(content, Plain) and self._limit >= BLOCK:
                for block in plain_blocks(content):
                    offset += len(block)
                    yield block
            if offset:
                position = moved(position, content, offset, LINES, offset)
            yield from _rest(Log(content, position, self._limit))
        except UnreadableError as error:
            self.unreadable[path] = error.reason
        except ReplacedError:
            self.unreadable[path] = "replaced"
        else:
            if isinstance(content, Gzip | Pipe) and content.truncated:
                self.unreadable[path] = "truncated"
        finally:
            content.close()


def _joined(lines: list[bytes]) -> bytes | list[bytes]:
    """Lines as a block, unless one of them is a value that goes over several."""
    block = b"\n".join(lines)
    return block if block.count(b"\n") == len(lines) - 1 else lines


def plain_blocks(content: Plain) -> Iterator[memoryview]:
    """The front of a log of JSON lines as blocks of whole lines, up to what only the careful reader can cut.

    All blocks are views of one buffer: a block is gone when the next one is asked for.
    """
    buffer, offset = bytearray(BLOCK), 0
    whole = memoryview(buffer).toreadonly()
    while True:
        size = content.read_into(buffer, offset)
        if not offset and (not buffer.startswith(b"{") or is_values(bytes(whole[:size]))):
            return
        end = buffer.rfind(b"\n", 0, size) + 1
        if not end or buffer.find(b"\0", 0, size) >= 0:
            return
        yield whole[:end]
        offset += end


def _rest(log: Log) -> Iterator[Piece]:
    while True:
        piece = log.advance()
        if piece is not None:
            yield piece
        elif isinstance(log.content, Pipe) and not log.content.complete:
            select.select([log.content], [], [])
        else:
            yield log.finish()
            return


def _open(path: str) -> tuple[Content, Position]:
    fd = os.dup(sys.stdin.fileno()) if path == STANDARD_INPUT else os.open(path, os.O_RDONLY)
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        return Pipe(fd), Position(-1, -1)
    return open_content(fd), Position(status.st_dev, status.st_ino)


def size_of(paths: Iterable[str]) -> int | None:
    """Bytes that there are to read; None where that is not known beforehand."""
    total = 0
    for path in paths:
        if path == STANDARD_INPUT:
            return None
        total += os.stat(path).st_size  # noqa: PTH116  # the path may be `-`, which is no Path
    return total
