"""The worker of one usage source: lines to records to counters, each batch one atomic change with its positions."""

from __future__ import annotations

import time
from itertools import chain
from typing import TYPE_CHECKING

from prefix_cache_exporter.recorder import Change

from .levels import publish, publish_fingerprints, take_fingerprints
from .record import NOTHING
from .tally import Tally
from .uptake import Uptake

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from prefix_cache_exporter.recorder import Recorder

    from .count import Counting
    from .earlier import Earlier
    from .follow import Follower
    from .following.batches import Batch
    from .intake import Intake
    from .lane.blocks import Blocks
    from .lane.remember import Durable
    from .quarantine import QuarantineFile
    from .sketch import Window

POLL_SECONDS = 0.5
"""Logs are looked at this often; new files are looked for every second."""
STEP_SECONDS = 1.0
"""So long a step reads at most, however much there is."""
CHANGE_LINES = 8192
"""Lines of one change, about; handing a change over costs the same for one line as for many."""
CHANGE_LABEL_SETS = 512
"""Label sets of one change, about: where each record has labels of its own, so few are all that memory is spent on."""
QUIET_SECONDS = 2.0
"""Logs that gained nothing for so long are drained."""
LOG, MERGE = "log", "merge"
"""Kinds of this worker's durable positions; the source's name follows behind a colon."""


class Ingest:
    """Reads what a source's logs gained and moves the counters by it. Polled from one thread.

    Args:
        source: the source's name.
        follower: gives its lines; made from the cursors of `cursor_kind(LOG, source)`.
        intake: reads lines and settles records; its stored parts are loaded here.
        earlier: what the source left in the state before.
        blocks: takes whole blocks of plain lines in faster.
        ids: their memory of ids; it is stored here.
        counting: counts records.
        recorder: takes the changes.
        fingerprints: the window of leading fingerprints.
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
        earlier: Earlier,
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
        self._clock, self._monotonic, self._busy_at = clock, monotonic, monotonic()
        self._follower, self._recorder, self._fingerprints = follower, recorder, fingerprints
        self._reading: Iterator[Batch] | None = None
        self._caught_up = False
        intake.merger.load(earlier.parts)
        self._uptake = Uptake(
            source,
            intake=intake,
            blocks=blocks,
            ids=ids,
            counting=counting,
            recorder=recorder,
            quarantine=quarantine,
            clock=clock,
            steady=steady_clock(clock, monotonic),
        )
        self._begin(earlier)

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
        self._uptake.begin()
        positions: dict[str, bytes | None] = {}
        try:
            for batch in self._reading:
                held += self._uptake.take(batch, tally)
                positions.update(batch.cursors)
                if held >= CHANGE_LINES or self._uptake.label_sets(tally) >= CHANGE_LABEL_SETS:
                    self._uptake.sum_up(tally)
                    self._uptake.begin()
                    self._apply(tally, positions)
                    lines += held
                    tally, positions, held = Tally(self.source), {}, 0
                if until is not None and self._monotonic() >= until:
                    break
            else:
                self._reading = None
            self._uptake.settle(tally)
        finally:  # what has been counted and its positions go together, whatever happens
            self._uptake.sum_up(tally)
            self._apply(tally, positions)
        publish(self.source, self._recorder, self._follower, self._uptake)
        if self._fingerprints is not None:
            publish_fingerprints(self.source, self._recorder, self._fingerprints, self._clock())
        return lines + held

    def _apply(
        self, tally: Tally, positions: Mapping[str, bytes | None], parts: Mapping[str, bytes | None] = NOTHING
    ) -> None:
        change = Change()
        tally.flush(change)
        for name, position in positions.items():
            change.cursor(cursor_kind(LOG, self.source), name, position)
        for name, payload in chain(parts.items(), self._uptake.cursors()):
            change.cursor(cursor_kind(MERGE, self.source), name, payload)
        self._recorder.apply(change)
        if self._fingerprints is not None:
            take_fingerprints(self.source, self._recorder, self._fingerprints, tally, self._clock())

    def _begin(self, earlier: Earlier) -> None:
        """Shows the counters that are truly 0 from the start, and ends what another configuration has begun."""
        tally = Tally(self.source)
        for family in ("lines", "duplicate_records"):
            tally.event(family, amount=0)
        self._uptake.count(earlier.outcomes, tally)
        self._apply(tally, earlier.marks, earlier.changed)


def steady_clock(clock: Callable[[], float], monotonic: Callable[[], float]) -> Callable[[], float]:
    """Seconds since 1970 by the clock of now, which go on at their pace however the clock is set.

    A clock that is set when a machine has begun, or goes on, must not end the streams that are being written then.
    """
    began = clock() - monotonic()
    return lambda: began + monotonic()


def cursor_kind(kind: str, source: str) -> str:
    """The kind of cursor under which a source's positions are stored."""
    return f"{kind}:{source}"
