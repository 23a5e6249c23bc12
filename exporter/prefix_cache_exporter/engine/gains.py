"""Increases of groups of series that restart together, added up per engine."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from .arrivals import Arrivals
from .delta import EngineDelta
from .records import MEASURES
from .restarts import GroupState, Step, step
from .snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .plan import Plan
    from .reading import EngineKey, Group, Reading, Series

NOT_NEW = "not_new"
"""Why what a series has counted is not taken for new although it was not on the last page."""
_FELL = "negative_increase"


class Gains:
    """What the engines of a page gained since the previous reading, before anything of it is judged.

    Attributes:
        engines: by engine, increases and why there are none.
        evidence: by engine, increases of what only bears witness.
        states: by group, what to remember.
        sources: by measure, what it is counted from.
        anomalies: by reason, how many increases could not be believed.
        restarted: engines whose restart was recognised.
    """

    def __init__(
        self, plan: Plan, reading: Reading, previous: Snapshot | None, *, fall_restarts: bool, final: bool
    ) -> None:
        self._witnesses, self._reading, self._previous = plan.dialect.evidence, reading, previous
        self._fall_restarts, self._final = fall_restarts, final
        self._arrivals = Arrivals(previous or Snapshot.zero(), reading.groups, lazy=plan.lazy or plan.dialect.grows)
        self.sources = {measure: _source(plan, reading, measure) for measure in (*MEASURES, *plan.dialect.evidence)}
        self.engines: defaultdict[EngineKey, EngineDelta] = defaultdict(EngineDelta)
        self.evidence: defaultdict[EngineKey, dict[str, float]] = defaultdict(dict)
        self.states: dict[Group, GroupState] = {}
        self.anomalies: Counter[str] = Counter()
        self._restarts, self._replaced = 0, False
        self.restarted: set[EngineKey] = set()

    @property
    def restarts(self) -> int:
        """Groups whose restart was recognised; 1 where an engine came back with none of its former labels."""
        return self._restarts or int(self._replaced)

    @property
    def gone(self) -> Mapping[Group, GroupState]:
        """Groups that are not on the page and still remembered, in the order in which they went."""
        return self._arrivals.gone

    def take(self, group: Group, now: GroupState) -> None:
        """Counts a group from its last state on."""
        self.engines[group.key]
        previous = self._previous
        self.states[group] = now
        if previous is None:
            return
        last = previous.groups.get(group)
        if last is None:
            self._welcome(group, now, previous)
            return
        taken = step(last, now, fall_restarts=self._fall_restarts, final=self._final)
        self.states[group] = taken.state
        self._restarts += taken.restarted
        if taken.unstable:
            self.anomalies["unstable_source"] += 1
        if taken.restarted:
            self.restarted.add(group.key)
            self._count(group, now, None, fresh=True)
            return
        forgotten: frozenset[Series] = frozenset()
        if taken.since is None:
            self._hold(group, _why_lost(last, taken))
            if taken.fallen:  # what is missing may still come: it is told, and withheld from nobody
                self.anomalies[_FELL] += len({series.measure for series in taken.fallen})
            if last.doubt == "renamed":  # and what went now may have been what returns
                self._arrivals.suspect(now)
        else:
            now = replace(now, values=taken.state.values)
            since = last if taken.since is last.values else replace(last, values=dict(taken.since))
            forgotten = self._count(group, now, since)
            for measure in {series.measure for series in taken.fallen}:
                self.refuse(group.key, measure, _FELL)
                self.evidence[group.key].pop(measure, None)
        if not last.values.keys() <= now.values.keys():
            # A series that is not on the page now goes on where it was if it comes back.
            kept = {series: value for series, value in last.values.items() if series not in forgotten}
            self.states[group] = replace(taken.state, values={**kept, **taken.state.values})

    def refuse(self, key: EngineKey, measure: str, reason: str) -> None:
        """Does not believe a measure's increase."""
        self.anomalies[reason] += 1
        self.engines[key].withheld[measure] = reason

    def _withhold(self, key: EngineKey, measure: str, reason: str) -> None:
        if measure not in self._witnesses:
            self.engines[key].withheld.setdefault(measure, reason)

    def _hold(self, group: Group, reason: str) -> None:
        """Counts nothing of a group now; with a reason, for good."""
        for measure in {series.measure for series in self._reading.groups[group]} if reason else ():
            self._withhold(group.key, measure, reason)

    def _welcome(self, group: Group, now: GroupState, previous: Snapshot) -> None:
        """Counts a group that was never seen."""
        origin = self._arrivals.group(now)
        self._replaced = self._replaced or origin.restarted
        if origin.since is None:
            self.anomalies[NOT_NEW] += 1
            self._hold(group, NOT_NEW)
        elif origin.was is None:
            self._count(group, now, None, fresh=origin.fresh)
        else:
            self._count(group, now, previous.groups[origin.was], was=origin.was.key)

    def _count(
        self,
        group: Group,
        now: GroupState,
        last: GroupState | None,
        *,
        was: EngineKey | None = None,
        fresh: bool = False,
    ) -> frozenset[Series]:
        """Adds what a group gained since its last state, or since 0. Returns series that go on under another label.

        Args:
            group: the group.
            now: its present state.
            last: None where all that it has counted is new.
            was: the engine that it was, if its labels have changed.
            fresh: whether all it has counted came after the last page, so that nothing before has to be compared.
        """
        key = group.key
        increases, evidence = self.engines[key].increases, self.evidence[key]
        factors = self._reading.factors.get(key, {})
        comparable: dict[str, bool] = {}
        renamed: set[Series] = set()
        for series, value in now.values.items():
            measure, _, by, part = series
            if measure not in comparable:
                comparable[measure] = self._comparable(key, measure, was or key, fresh=fresh)
            if not comparable[measure]:
                continue
            before: float | None = 0.0
            if last is not None and (before := last.values.get(series)) is None:
                before, left = self._arrivals.series(series, now, last)
                renamed.update(left)
            if before is None:
                self._doubt(key, measure)
                comparable[measure] = False
                continue
            amount = (value - before) * factors.get(measure, 1.0)
            if measure not in self._witnesses:
                slot = (measure, by, part)
                increases[slot] = increases.get(slot, 0) + amount
            elif not part:
                evidence[measure] = evidence.get(measure, 0) + amount
        return frozenset(renamed)

    def _doubt(self, key: EngineKey, measure: str) -> None:
        """Does not believe that what a measure's series have counted is new."""
        self.anomalies[NOT_NEW] += 1
        self._withhold(key, measure, NOT_NEW)
        self.evidence[key].pop(measure, None)

    def _comparable(self, key: EngineKey, measure: str, was: EngineKey, *, fresh: bool) -> bool:
        """Whether increases of a measure may be taken; where not, it says why."""
        if self._reading.reason(measure, key):
            return False
        previous = self._previous
        if fresh or previous is None or previous.origin:
            return True
        same = previous.sources.get(measure) == self.sources[measure]
        if same and measure not in previous.lost.get(was, ()):
            return True
        self._withhold(key, measure, "no_baseline")
        return False


def _why_lost(last: GroupState, taken: Step) -> str:
    """Why what a group has counted will never be; empty where it may still be."""
    if taken.unstable:
        return "unstable_source"
    if last.doubt == "renamed":
        return NOT_NEW
    return _FELL if last.doubt == "older" and not taken.state.doubt else ""


def _source(plan: Plan, reading: Reading, measure: str) -> str | None:
    """What a measure is counted from: where that changes, the values before and after cannot be compared.

    A measure that has no series yet is counted from where its series will be: they begin at 0.
    """
    if reading.withheld.get(measure) not in (None, "no_series"):
        return None
    entry = plan.dialect.entries.get(measure) or plan.dialect.evidence.get(measure)
    if entry is None or entry.kind not in ("counter", "histogram"):
        return None
    factors = {f"{key.engine}/{key.model}": f[measure] for key, f in reading.factors.items() if measure in f}
    return f"{' + '.join(entry.families)} {dict(entry.where)} {entry.part} {entry.unit} {sorted(factors.items())}"
