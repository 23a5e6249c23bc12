"""The worker of one usage source: lines to records to counters, each batch one atomic change with its positions."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from prefix_cache_exporter.measures import EXPORTER, USAGE
from prefix_cache_exporter.recorder import Change

from .count import Tally
from .count_many import count_group, count_sums, on_time
from .pieces import Block
from .record import Duplicate, Quarantined, Skipped, UsageRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from prefix_cache_exporter.recorder import Recorder

    from .blocks import Blocks
    from .count import Counting
    from .follow import Follower
    from .following.batches import Batch
    from .intake import Group, Intake
    from .merge import Outcome
    from .quarantine import QuarantineFile
    from .remember import Durable
    from .sketch import Window
    from .sums import Sums

_log = logging.getLogger(__name__)

POLL_SECONDS = 0.5
"""Logs are looked at this often; new files are looked for every second."""
STEP_SECONDS = 1.0
"""So long a step reads at most, however much there is."""
CHANGE_LINES = 8192
"""Lines of one change, about; handing a change over costs the same for one line as for many."""
QUIET_SECONDS = 2.0
"""Logs that gained nothing for so long are drained."""
LOG, MERGE = "log", "merge"
"""Kinds of this worker's durable positions; the source's name follows behind a colon."""
_DUPLICATE = Duplicate()
_LABELS = ("source", "provider", "model", "template", "template_revision")


class Ingest:
    """Reads what a source's logs gained and moves the counters by it. Polled from one thread.

    Args:
        source: the source's name.
        follower: gives its lines; made from the cursors of `cursor_kind(LOG, source)`.
        intake: reads lines and settles records; its stored parts are loaded here.
        blocks: takes whole blocks of plain lines in faster.
        ids: their memory of ids; it is stored here.
        counting: counts records.
        recorder: takes the changes.
        fingerprints: the window of leading fingerprints to publish.
        quarantine: where the numbers of undecided records go.
        clock: seconds since 1970.
        monotonic: seconds that never go back.
    """

    def __init__(
        self,
        source: str,
        *,
        follower: Follower,
        intake: Intake,
        blocks: Blocks | None = None,
        ids: Durable | None = None,
        counting: Counting,
        recorder: Recorder,
        fingerprints: Window | None = None,
        quarantine: QuarantineFile | None = None,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.source = source
        self._monotonic, self._busy_at = monotonic, monotonic()
        self._follower, self._intake, self._blocks, self._ids = follower, intake, blocks, ids
        self._counting, self._recorder, self._fingerprints = counting, recorder, fingerprints
        self._quarantine, self._clock = quarantine, clock
        self._reading: Iterator[Batch] | None = None
        self._last_record: float | None = None
        self._complained = self._caught_up = False
        intake.merger.load(recorder.cursors(cursor_kind(MERGE, source)))
        self._begin()

    @property
    def caught_up(self) -> bool:
        """Whether everything that was in the logs at the start has been counted."""
        return self._caught_up

    def step(self, *, draining: bool) -> float | None:
        """One poll; returns the seconds until the next, None where none will follow.

        Draining goes on until the logs have been quiet for a while: whoever writes them may be ending, too
        (open-telemetry/opentelemetry-operator#4065).
        """
        now = self._monotonic()
        lines = self._run(self._monotonic() + STEP_SECONDS)
        if self._reading is not None:
            return 0.0  # there is more: the worker only looks whether it shall end
        self._caught_up = True
        if lines or not draining:
            self._busy_at = now
        elif now - self._busy_at >= QUIET_SECONDS:
            self.drain()
            return None
        return POLL_SECONDS / 2 if draining else POLL_SECONDS

    def poll(self) -> int:
        """Takes in everything that is in the logs now and settles what is due. Returns how many lines there were."""
        return self._run(None)

    def drain(self) -> int:
        """Reads to the end of every log before the process ends. Records that are still merging stay in the state."""
        lines = self._run(None)
        self._reading = self._follower.poll(draining=True)
        return lines + self._run(None)

    def close(self) -> None:
        """Closes the log files."""
        self._follower.close()

    def _run(self, until: float | None) -> int:
        """Reads on, until a moment if given; what is left then is read next."""
        lines = 0
        if self._reading is None:
            self._reading = self._follower.poll()
        tally, held = Tally(self.source), 0
        self._window()
        positions: dict[str, bytes | None] = {}
        try:
            for batch in self._reading:
                held += self._take(batch, tally)
                positions.update(batch.cursors)
                if held >= CHANGE_LINES:
                    self._sums(self._blocks.sums() if self._blocks is not None else (), tally)
                    self._window()
                    self._apply(tally, positions)
                    lines += held
                    tally, positions, held = Tally(self.source), {}, 0
                if until is not None and self._monotonic() >= until:
                    break
            else:
                self._reading = None
            self._outcomes(self._settled(), tally, self._clock())
        finally:  # what has been counted and its positions go together, whatever happens
            self._sums(self._blocks.sums() if self._blocks is not None else (), tally)
            self._apply(tally, positions)
        self._publish(self._clock())
        return lines + held

    def _window(self) -> None:
        """Bounds the times of what is summed up next."""
        if self._blocks is not None:
            self._blocks.window = on_time(self._clock())

    def _sums(self, sums: Iterable[Sums], tally: Tally) -> None:
        now = self._clock()
        for some in sums:
            count_sums(self._counting, some, tally, now)
            self._last_record = now

    def _take(self, batch: Batch, tally: Tally) -> int:
        now = self._clock()
        lines = self._lines(batch.lines, batch.log, tally, now) if batch.lines else 0
        tally.event("lines", amount=lines + sum(batch.lost.values()))
        for reason, amount in batch.lost.items():
            tally.event("lost_lines", reason, amount)
        for reason, amount in batch.lost_files.items():
            tally.event("lost_files", reason, amount)
            _log.warning("%s: %d log file(s) lost: %s", self.source, amount, reason)
        for log in batch.ended:
            self._outcomes(self._intake.merger.end(log), tally, now)
        return lines

    def _lines(self, lines: Sequence[bytes], log: str, tally: Tally, now: float) -> int:
        try:
            groups, outcomes, count = self._gather(lines, now, log, tally)
        except Exception as error:  # noqa: BLE001  # a mistake of ours costs one counted line, never the file
            self._mistake(error)
            groups, outcomes, count = [], self._one_by_one(lines, log, tally, now), len(lines)
        for group in groups:
            count_group(self._counting, group, tally, now)
            self._last_record = now
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

    def _settled(self) -> Iterable[Outcome]:
        """What has been silent for long enough; a line without usage may have waited for one that a block had."""
        settled = self._intake.settle(self._clock())
        return self._new(settled) if self._blocks is not None and self._blocks.able else settled

    def _new(self, outcomes: Iterable[Outcome]) -> list[Outcome]:
        """What the general way found, held against the ids of whole blocks, too."""
        add = self._ids.add if self._ids is not None else None
        return [
            _DUPLICATE
            if add is not None and isinstance(one, UsageRecord) and one.id is not None and not add(one.id)
            else one
            for one in outcomes
        ]

    def _one_by_one(self, lines: Sequence[bytes], log: str, tally: Tally, now: float) -> list[Outcome]:
        found: list[Outcome] = []
        for line in lines:
            try:
                found += self._intake.take([line], now, log)
            except Exception as error:  # noqa: BLE001  # likewise
                tally.event("lost_lines", "internal_error")
                self._mistake(error)
        return found

    def _outcomes(self, outcomes: Iterable[Outcome], tally: Tally, now: float) -> None:
        for outcome in outcomes:
            if isinstance(outcome, UsageRecord):
                self._counting.count(outcome, tally, now)
                self._last_record = now
            elif isinstance(outcome, Duplicate):
                tally.event("duplicate_records")
            elif isinstance(outcome, Quarantined):
                tally.event("quarantined_records", outcome.reason)
                if self._quarantine is not None:
                    self._quarantine.write(outcome)
            else:
                self._skipped(outcome, tally)

    @staticmethod
    def _skipped(item: Skipped, tally: Tally) -> None:
        tally.event("lost_lines" if item.kind == "lost" else "ignored_lines", item.reason)

    def _apply(self, tally: Tally, positions: Mapping[str, bytes | None] | None = None) -> None:
        change = Change()
        tally.flush(change)
        for name, position in (positions or {}).items():
            change.cursor(cursor_kind(LOG, self.source), name, position)
        for name, payload in self._intake.merger.changes().items():
            change.cursor(cursor_kind(MERGE, self.source), name, payload)
        for name, later in self._ids.changes().items() if self._ids is not None else ():
            change.cursor(cursor_kind(MERGE, self.source), name, later)
        self._recorder.apply(change)

    def _begin(self) -> None:
        """Shows the counters that are truly 0 from the start."""
        tally = Tally(self.source)
        for family in ("lines", "duplicate_records"):
            tally.event(family, amount=0)
        self._apply(tally)

    def _publish(self, now: float) -> None:
        levels = {
            "open_records": self._intake.merger.open_records,
            "log_files": self._follower.files,
            "log_unread_bytes": self._follower.unread_bytes,
            "log_readable": self._follower.readable,
            "log_last_record_timestamp_seconds": self._last_record,
        }
        scope = {"source": self.source}
        for family, level in levels.items():
            if level is not None:
                self._recorder.set_gauge(USAGE[family], scope, float(level))
        if self._fingerprints is not None:
            found = [
                (dict(zip(_LABELS[1:], key, strict=True)), distinct, requests)
                for key, distinct, requests in self._fingerprints.levels(now)
            ]
            self._recorder.replace_gauges(
                USAGE["leading_fingerprints"], scope, [(labels, distinct) for labels, distinct, _ in found]
            )
            self._recorder.replace_gauges(
                USAGE["leading_fingerprint_requests"], scope, [(labels, float(count)) for labels, _, count in found]
            )

    def _mistake(self, error: Exception) -> None:
        change = Change()
        change.add(EXPORTER["internal_errors"], {"worker": f"usage/{self.source}"}, 1)
        self._recorder.apply(change)
        if not self._complained:
            self._complained = True
            # The kind and place of the mistake only: its text may quote the line.
            trace = error.__traceback__
            while trace is not None and trace.tb_next is not None:
                trace = trace.tb_next
            place = f"{trace.tb_frame.f_code.co_qualname}:{trace.tb_lineno}" if trace is not None else "unknown"
            _log.error("%s: a line could not be processed: %s in %s", self.source, type(error).__name__, place)


def cursor_kind(kind: str, source: str) -> str:
    """The kind of cursor under which a source's positions are stored."""
    return f"{kind}:{source}"
