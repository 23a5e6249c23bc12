"""What a source's lines come to: records counted, losses, repeats and quarantined ones said."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from prefix_cache_exporter.measures import EXPORTER
from prefix_cache_exporter.recorder import Change

from .count_many import count_group, count_sums, on_time
from .pieces import Block
from .record import Duplicate, Quarantined, UsageRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from prefix_cache_exporter.recorder import Recorder

    from .count import Counting
    from .following.batches import Batch
    from .intake import Group, Intake
    from .lane.blocks import Blocks
    from .lane.remember import Durable
    from .lane.sums import Sums
    from .quarantine import QuarantineFile
    from .record import Outcome
    from .tally import Tally

_log = logging.getLogger(__name__)

_DUPLICATE = Duplicate()


class Uptake:
    """Takes lines in and moves a tally by them.

    Args:
        source: the source's name.
        intake: reads lines and settles records.
        blocks: takes whole blocks of plain lines in faster.
        ids: their memory of ids.
        counting: counts records.
        recorder: is told of mistakes of ours.
        quarantine: where the numbers of undecided records go.
        clock: seconds since 1970.
        steady: seconds that no setting of the clock moves, for what records wait.

    Attributes:
        last_record: when a record was counted last, in seconds since 1970; None where none ever was.
    """

    def __init__(
        self,
        source: str,
        *,
        intake: Intake,
        blocks: Blocks | None = None,
        ids: Durable | None = None,
        counting: Counting,
        recorder: Recorder,
        quarantine: QuarantineFile | None = None,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.time,
    ) -> None:
        self._steady = steady
        self._source, self._intake, self._blocks, self._ids = source, intake, blocks, ids
        self._counting, self._recorder, self._quarantine, self._clock = counting, recorder, quarantine, clock
        self._complained, self._summed = False, 0
        self.last_record: float | None = None

    @property
    def open_records(self) -> int:
        """Records that wait for further lines."""
        return self._intake.merger.open_records

    def begin(self) -> None:
        """Bounds the times of what is summed up next."""
        self._summed = self._counting.summed
        if self._blocks is not None:
            self._blocks.window = on_time(self._clock())

    def label_sets(self, tally: Tally) -> int:
        """How many label sets records have had since the beginning."""
        return len(tally.rows) + self._counting.summed - self._summed

    def take(self, batch: Batch, tally: Tally) -> int:
        """Takes a batch in; returns how many lines it had."""
        now = self._clock()
        lines = self._lines(batch.lines, batch.log, tally, now) if batch.lines else 0
        tally.event("lines", amount=lines + sum(batch.lost.values()))
        for reason, amount in batch.lost.items():
            tally.event("lost_lines", reason, amount)
        for reason, amount in batch.lost_files.items():
            tally.event("lost_files", reason, amount)
            _log.warning("%s: %d log file(s) lost: %s", self._source, amount, reason)
        for log in batch.ended:
            self._outcomes(self._intake.merger.end(log), tally, now)
        return lines

    def count(self, outcomes: Iterable[Outcome], tally: Tally) -> None:
        """Counts what lines came to that were taken in before."""
        self._outcomes(outcomes, tally, self._clock())

    def settle(self, tally: Tally) -> None:
        """Counts what has been silent for long enough; a line without usage may have waited for one of a block."""
        self._outcomes(self._new(self._intake.settle(self._steady())), tally, self._clock())

    def sum_up(self, tally: Tally) -> None:
        """Counts what whole blocks have been summed up to so far."""
        self._sums(self._blocks.sums() if self._blocks is not None else (), tally)

    def cursors(self) -> Iterator[tuple[str, bytes | Callable[[], bytes] | None]]:
        """What changed of records that are still merging and of ids that are remembered, to store with the counters."""
        yield from self._intake.merger.changes().items()
        if self._ids is not None:
            yield from self._ids.changes().items()

    def _lines(self, lines: Sequence[bytes], log: str, tally: Tally, now: float) -> int:
        try:
            groups, outcomes, count = self._gather(lines, self._steady(), log, tally)
        except Exception as error:  # noqa: BLE001  # a mistake of ours costs one counted line, never the file
            self._mistake(error)
            groups, outcomes, count = [], self._one_by_one(lines, log, tally, self._steady()), len(lines)
        for group in groups:
            count_group(self._counting, group, tally, now)
            self.last_record = now
        self._outcomes(outcomes, tally, now)
        return count

    def _gather(
        self, lines: Sequence[bytes], now: float, log: str, tally: Tally
    ) -> tuple[list[Group], list[Outcome], int]:
        if self._blocks is None or not self._blocks.able:
            groups, outcomes = self._intake.gather(lines, now, log)
            return groups, outcomes, len(lines)
        block = lines.data if isinstance(lines, Block) else b"\n".join(lines) + b"\n"
        if not isinstance(lines, Block) and block.count(b"\n") != len(lines):  # values of an array over several lines
            return [], self._new(self._intake.take(lines, now, log)), len(lines)
        taken = self._blocks.take(block)
        self._sums(taken.sums, tally)
        repeats: list[Outcome] = [_DUPLICATE] * taken.repeats
        return taken.groups, repeats + self._new(self._intake.take(taken.odd, now, log)), taken.lines

    def _new(self, outcomes: Iterable[Outcome]) -> list[Outcome]:
        """What the general way found, held against the ids of whole blocks, too."""
        blocks = self._blocks
        return [_DUPLICATE if blocks is not None and blocks.repeats(one) else one for one in outcomes]

    def _one_by_one(self, lines: Sequence[bytes], log: str, tally: Tally, now: float) -> list[Outcome]:
        found: list[Outcome] = []
        for line in lines:
            try:
                found += self._intake.take([line], now, log)
            except Exception as error:  # noqa: BLE001  # likewise
                tally.event("lost_lines", "internal_error")
                self._mistake(error)
        return found

    def _sums(self, sums: Iterable[Sums], tally: Tally) -> None:
        now = self._clock()
        for some in sums:
            count_sums(self._counting, some, tally, now)
            self.last_record = now

    def _outcomes(self, outcomes: Iterable[Outcome], tally: Tally, now: float) -> None:
        for outcome in outcomes:
            if isinstance(outcome, UsageRecord):
                self._counting.count(outcome, tally, now)
                self.last_record = now
            elif isinstance(outcome, Duplicate):
                tally.event("duplicate_records")
            elif isinstance(outcome, Quarantined):
                tally.event("quarantined_records", outcome.reason)
                if self._quarantine is not None:
                    self._quarantine.write(outcome)
            else:
                tally.event("lost_lines" if outcome.kind == "lost" else "ignored_lines", outcome.reason)

    def _mistake(self, error: Exception) -> None:
        change = Change()
        change.add(EXPORTER["internal_errors"], {"worker": f"usage/{self._source}"}, 1)
        self._recorder.apply(change)
        if not self._complained:
            self._complained = True
            # The kind and place of the mistake only: its text may quote the line.
            trace = error.__traceback__
            while trace is not None and trace.tb_next is not None:
                trace = trace.tb_next
            place = f"{trace.tb_frame.f_code.co_qualname}:{trace.tb_lineno}" if trace is not None else "unknown"
            _log.error("%s: a line could not be processed: %s in %s", self._source, type(error).__name__, place)
