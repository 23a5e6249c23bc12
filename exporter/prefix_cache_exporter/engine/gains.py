"""Increases of groups of series that restart together, added up per engine."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from .delta import EngineDelta
from .records import MEASURES
from .restarts import GroupState, step

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .plan import Plan
    from .reading import EngineKey, Group, Reading, Series
    from .snapshot import Snapshot


class Gains:
    """What the engines of a page gained since the previous reading, before anything of it is judged.

    Attributes:
        engines: by engine, increases and why there are none.
        evidence: by engine, increases of what only bears witness.
        states: by group, what to remember.
        sources: by measure, what it is counted from.
        anomalies: by reason, how many increases could not be believed.
        restarts: groups whose restart was recognised.
    """

    def __init__(self, plan: Plan, reading: Reading, previous: Snapshot | None, *, fall_restarts: bool) -> None:
        self._witnesses, self._reading, self._previous = plan.dialect.evidence, reading, previous
        self._fall_restarts = fall_restarts
        self.sources = {measure: _source(plan, reading, measure) for measure in (*MEASURES, *plan.dialect.evidence)}
        self.engines: defaultdict[EngineKey, EngineDelta] = defaultdict(EngineDelta)
        self.evidence: defaultdict[EngineKey, dict[str, float]] = defaultdict(dict)
        self.states: dict[Group, GroupState] = {}
        self.anomalies: Counter[str] = Counter()
        self.restarts = 0

    def take(self, group: Group, now: GroupState) -> None:
        """Counts a group from its last state on."""
        self.engines[group.key]
        previous = self._previous
        last = None if previous is None else previous.groups.get(group)
        if previous is None:
            self.states[group] = now
            return
        if last is None:  # a rank or replica that was not there: all it has counted is new
            self.states[group] = now
            self._count(group, now, {}, restarted=False)
            return
        taken = step(last, now, fall_restarts=self._fall_restarts)
        self.states[group] = taken.state
        if not taken.restarted and not last.values.keys() <= now.values.keys():
            # A series that is not on the page now goes on where it was if it comes back.
            self.states[group] = replace(taken.state, values={**last.values, **now.values})
        self.restarts += taken.restarted
        if taken.unstable:
            self.anomalies["unstable_source"] += 1
        if taken.since is None:
            self._hold(group, "unstable_source" if taken.unstable else "")
            return
        self._count(group, now, taken.since, restarted=taken.restarted)
        for measure in {series.measure for series in taken.fallen}:
            self.refuse(group.key, measure, "negative_increase")
            self.evidence[group.key].pop(measure, None)

    def refuse(self, key: EngineKey, measure: str, reason: str) -> None:
        """Does not believe a measure's increase."""
        self.anomalies[reason] += 1
        self.engines[key].withheld[measure] = reason

    def _hold(self, group: Group, reason: str) -> None:
        """Counts nothing of a group now; with a reason, for good."""
        for measure in {series.measure for series in self._reading.groups[group]} if reason else ():
            self.engines[group.key].withheld.setdefault(measure, reason)

    def _count(self, group: Group, now: GroupState, since: Mapping[Series, float], *, restarted: bool) -> None:
        key = group.key
        increases, evidence = self.engines[key].increases, self.evidence[key]
        factors = self._reading.factors.get(key, {})
        comparable: dict[str, bool] = {}
        for series, value in now.values.items():
            measure, _, by, part = series
            if measure not in comparable:
                comparable[measure] = self._comparable(key, measure, restarted=restarted)
            if not comparable[measure]:
                continue
            amount = (value - since.get(series, 0.0)) * factors.get(measure, 1.0)
            if measure not in self._witnesses:
                slot = (measure, by, part)
                increases[slot] = increases.get(slot, 0) + amount
            elif not part:
                evidence[measure] = evidence.get(measure, 0) + amount

    def _comparable(self, key: EngineKey, measure: str, *, restarted: bool) -> bool:
        """Whether increases of a measure may be taken; where not, it says why."""
        if self._reading.reason(measure, key):
            return False
        previous = self._previous
        if restarted or previous is None or previous.origin:
            return True
        same = previous.sources.get(measure) == self.sources[measure]
        if same and measure not in previous.lost.get(key, ()):
            return True
        self.engines[key].withheld[measure] = "no_baseline"
        return False


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
