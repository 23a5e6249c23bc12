"""What an engine counted between two readings.

Increases are taken per group of series that restart together, then added up per engine. An interval whose cached tokens
cannot be trusted is excluded from both sides of the population hit ratio, and its prompt tokens count apart, by reason.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from .caveats import Evidence, holds
from .records import MEASURES
from .restarts import GroupState, step
from .snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .plan import Plan
    from .reading import EngineKey, Group, Reading, Series
    from .records import Entry

CACHED, PROMPT, EXCLUDED = "cached_prompt_tokens", "prompt_tokens", "excluded_prompt_tokens"
_FIRST_TOKENS, _LENGTHS = "time_to_first_token_seconds", "finished_prompt_tokens"
_IMPOSSIBLE = ("not_finite", "negative", "too_large")
"""Reasons for withholding that no engine gives by design."""
_WHOLE_UNITS = {"tokens", "requests", "blocks"}
_HELD_GROUPS = 256
"""Groups that are not on the page any more and still remembered: if one returns, it goes on where it was."""


class Increase(NamedTuple):
    """One counter's increase, as the ledger wants it.

    Attributes:
        measure: id in the catalogue.
        engine: rank.
        model: as the page names it.
        by: the value of the measure's own label (finish reason, tier, exclusion reason), else empty.
        part: for histograms `sum` or the bucket's `le`, else empty.
        amount: whole for tokens, requests and buckets.
    """

    measure: str
    engine: str
    model: str
    by: str
    part: str
    amount: float


@dataclass(slots=True)
class EngineDelta:
    """What one engine counted.

    Attributes:
        increases: by measure, own label and histogram part; in the measure's unit.
        withheld: by measure, why it has no increase for this interval.
        caveats: ids of the caveats that were active.
        excluded: why the interval's prompt tokens are excluded, or None if they are not.
    """

    increases: dict[tuple[str, str, str], float] = field(default_factory=dict)
    withheld: dict[str, str] = field(default_factory=dict)
    caveats: list[str] = field(default_factory=list)
    excluded: str | None = None

    def total(self, measure: str) -> float | None:
        """A counter's increase over all its own labels; None where there is none."""
        amounts = [amount for (name, _, part), amount in self.increases.items() if name == measure and not part]
        return sum(amounts) if amounts else None


@dataclass(frozen=True, slots=True)
class Delta:
    """What was counted between two readings.

    Attributes:
        engines: by engine.
        withheld: by measure, why no engine has it, or why at least one has not.
        caveats: ids of active caveats, in the map's order.
        anomalies: by reason, how many increases could not be believed.
        restarts: groups whose restart was recognised.
        counted: False where there was no reading to count from.
    """

    engines: Mapping[EngineKey, EngineDelta]
    withheld: Mapping[str, str]
    caveats: tuple[str, ...] = ()
    anomalies: Mapping[str, int] = field(default_factory=dict)
    restarts: int = 0
    counted: bool = True

    def ledger(self) -> Iterator[Increase]:
        """Increases as the ledger counts them: prompt tokens of excluded intervals move to the excluded ones."""
        for (engine, model), delta in self.engines.items():
            for (measure, by, part), amount in delta.increases.items():
                if measure == PROMPT and delta.excluded is not None:
                    yield Increase(EXCLUDED, engine, model, delta.excluded, part, amount)
                else:
                    yield Increase(measure, engine, model, by, part, amount)


def deltas(
    previous: Snapshot | None, reading: Reading, *, fall_restarts: bool = False
) -> tuple[Delta, Snapshot | None]:
    """What was counted since the previous reading, and what to remember for the next one.

    Args:
        previous: what the last call returned, also after a restart of the exporter; None before the first.
        reading: the present reading.
        fall_restarts: whether a fall that no start time explains is a restart at once. Without it, it is one as soon
            as the next readings show that no other process answered (see `restarts`); nothing is lost meanwhile.

    Returns:
        The increases, and the snapshot. A reading of which nothing can be used leaves the snapshot as it was.
    """
    if not reading.usable or reading.plan is None:
        return Delta({}, reading.withheld, counted=False), previous
    return _Interval(reading.plan, reading, previous, fall_restarts=fall_restarts).close()


def since_start(reading: Reading) -> Delta:
    """What the engines counted since they started, in one interval."""
    return deltas(Snapshot.zero(), reading)[0]


class _Interval:
    def __init__(self, plan: Plan, reading: Reading, previous: Snapshot | None, *, fall_restarts: bool) -> None:
        self._plan, self._reading, self._previous = plan, reading, previous
        self._fall_restarts, self._keys = fall_restarts, reading.engines
        self._entries: dict[str, Entry] = {**plan.dialect.entries, **plan.dialect.evidence}
        self._sources = {measure: _source(plan, reading, measure) for measure in (*MEASURES, *plan.dialect.evidence)}
        self._engines: defaultdict[EngineKey, EngineDelta] = defaultdict(EngineDelta)
        self._evidence: defaultdict[EngineKey, dict[str, float]] = defaultdict(dict)
        self._anomalies: Counter[str] = Counter()
        self._restarts = 0
        self._states: dict[Group, GroupState] = {}

    def close(self) -> tuple[Delta, Snapshot]:
        reading = self._reading
        for group, values in reading.groups.items():
            self._engines[group.key]
            self._take(group, GroupState(values, reading.created.get(group, {}), reading.started))
        in_flight = {key: self._explained(key) for key in self._keys}
        for key in self._keys:
            self._judge(key, in_flight[key])
        gone = {} if self._previous is None else self._previous.groups
        left = [(group, state) for group, state in gone.items() if group not in self._states]
        states = {**self._states, **dict(left[-_HELD_GROUPS:])}
        sources = {measure: source for measure, source in self._sources.items() if source}
        lost = {
            key: frozenset(measure for measure, reason in reasons.items() if reason != "no_series")
            for key, reasons in reading.engine_withheld.items()
        }
        snapshot = Snapshot(sources, states, in_flight, lost)
        active = {id_ for delta in self._engines.values() for id_ in delta.caveats}
        delta = Delta(
            self._engines,
            self._withheld(),
            tuple(id_ for id_ in self._plan.dialect.caveats if id_ in active),
            dict(self._anomalies),
            self._restarts,
            counted=self._previous is not None,
        )
        return delta, snapshot

    def _take(self, group: Group, now: GroupState) -> None:
        previous = self._previous
        last = None if previous is None else previous.groups.get(group)
        if previous is None:
            self._states[group] = now
            return
        if last is None:  # a rank or replica that was not there: all it has counted is new
            self._states[group] = now
            self._count(group, now, {}, restarted=False)
            return
        taken = step(last, now, fall_restarts=self._fall_restarts)
        self._states[group] = taken.state
        if not taken.restarted and not last.values.keys() <= now.values.keys():
            # A series that is not on the page now goes on where it was if it comes back.
            self._states[group] = replace(taken.state, values={**last.values, **now.values})
        self._restarts += taken.restarted
        if taken.unstable:
            self._anomalies["unstable_source"] += 1
        if taken.since is None:
            self._hold(group, "unstable_source" if taken.unstable else "")
            return
        self._count(group, now, taken.since, restarted=taken.restarted)
        for measure in {series.measure for series in taken.fallen}:
            self._refuse(group.key, measure, "negative_increase")
            self._evidence[group.key].pop(measure, None)

    def _hold(self, group: Group, reason: str) -> None:
        """Counts nothing of a group now; with a reason, for good."""
        for measure in {series.measure for series in self._reading.groups[group]} if reason else ():
            self._engines[group.key].withheld.setdefault(measure, reason)

    def _refuse(self, key: EngineKey, measure: str, reason: str) -> None:
        self._anomalies[reason] += 1
        self._engines[key].withheld[measure] = reason

    def _count(self, group: Group, now: GroupState, since: Mapping[Series, float], *, restarted: bool) -> None:
        key = group.key
        increases, evidence = self._engines[key].increases, self._evidence[key]
        factors = self._reading.factors.get(key, {})
        comparable: dict[str, bool] = {}
        for series, value in now.values.items():
            measure, _, by, part = series
            if measure not in comparable:
                comparable[measure] = self._comparable(key, measure, restarted=restarted)
            if not comparable[measure]:
                continue
            amount = (value - since.get(series, 0.0)) * factors.get(measure, 1.0)
            if measure not in self._plan.dialect.evidence:
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
        same = previous.sources.get(measure) == self._sources[measure]
        if same and measure not in previous.lost.get(key, ()):
            return True
        self._engines[key].withheld[measure] = "no_baseline"
        return False

    def _requests(self, key: EngineKey) -> float:
        """Requests in flight, as far as the page says."""
        gauges = self._reading.gauges.get(key, {})
        levels = [gauges.get(name) for name in ("running_requests", "waiting_requests")]
        return sum(level for level in levels if isinstance(level, float))

    def _explained(self, key: EngineKey) -> float:
        """Prompt tokens that may have been looked up without being counted as prompt tokens yet, or ever.

        As many mean prompts as there are requests in flight, or one of the longest, which may also have been aborted
        before its first token.
        """
        requests = self._requests(key)
        prompt = first = 0.0
        lengths: dict[float, float] = {}
        for group, values in self._reading.groups.items():
            if group.key != key:
                continue
            for series, value in values.items():
                if series.measure == PROMPT:
                    prompt += value
                elif series.measure == _FIRST_TOKENS and series.part == "+Inf":
                    first += value
                elif series.measure == _LENGTHS and series.part != "sum":
                    edge = float(series.part)
                    lengths[edge] = lengths.get(edge, 0.0) + value
        if requests and not prompt:  # none has had its first token: whatever was looked up is in flight
            return math.inf
        mean = prompt / first if first else 0.0
        return max(requests * mean, _longest(lengths))

    def _judge(self, key: EngineKey, explained: float) -> None:
        """Holds the interval's sums against the caveats, and decides whether its cached tokens count."""
        delta = self._engines[key]
        for measure in MEASURES:
            reason = self._reading.reason(measure, key)
            if reason:
                delta.withheld[measure] = reason
        refused = set(self._reading.engine_withheld.get(key, {}).values())
        self._anomalies.update(reason for reason in _IMPOSSIBLE if reason in refused)
        self._round(key, delta)
        for measure in delta.withheld:
            _drop(delta, measure)
        self._apply_caveats(key, delta, explained)
        if delta.total(PROMPT) is None:
            if delta.total(CACHED) is not None:
                _withhold(delta, CACHED, f"{PROMPT}_unknown")
        elif CACHED in delta.withheld:
            delta.excluded = delta.withheld[CACHED]

    def _round(self, key: EngineKey, delta: EngineDelta) -> None:
        """Counts of tokens, requests and observations are whole, or not believed."""
        for (measure, by, part), amount in list(delta.increases.items()):
            entry = self._entries[measure]
            if part == "sum" or (entry.unit not in _WHOLE_UNITS and not part):
                continue
            if not float(amount).is_integer():
                self._refuse(key, measure, "not_whole")
            else:
                delta.increases[measure, by, part] = int(amount)

    def _apply_caveats(self, key: EngineKey, delta: EngineDelta, explained: float) -> None:
        reading, previous = self._reading, self._previous
        sums: dict[str, float] = {}
        for (measure, _, part), amount in delta.increases.items():
            if not part:
                sums[measure] = sums.get(measure, 0) + amount
        evidence = Evidence(
            {**sums, **self._evidence[key]},
            explained,
            previous.in_flight.get(key, 0.0) if previous else 0.0,
            self._requests(key) > 0,
            reading.info.get(key, {}),
            reading.labels,
            [engine.engine for engine in self._keys],
        )
        for caveat in self._plan.dialect.caveats.values():
            if not holds(caveat, evidence):
                continue
            delta.caveats.append(caveat.id)
            if caveat.anomaly:
                self._anomalies[caveat.id] += 1
            for measure in caveat.invalidates:
                if measure not in delta.withheld and (sums.get(measure) or not caveat.spares_zero):
                    _withhold(delta, measure, caveat.id)

    def _withheld(self) -> dict[str, str]:
        withheld = dict(self._reading.withheld)
        for delta in self._engines.values():
            for measure, reason in delta.withheld.items():
                withheld.setdefault(measure, reason)
        return withheld


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


def _longest(lengths: Mapping[float, float]) -> float:
    """The upper bound of the longest prompts in a histogram of lengths; of those beyond all bounds, the last bound."""
    bounds = sorted(edge for edge in lengths if edge != math.inf)
    whole = max(lengths.values(), default=0.0)
    if not whole or not bounds:
        return 0.0
    return next((edge for edge in bounds if lengths[edge] >= whole), bounds[-1])


def _withhold(delta: EngineDelta, measure: str, reason: str) -> None:
    delta.withheld[measure] = reason
    _drop(delta, measure)


def _drop(delta: EngineDelta, measure: str) -> None:
    for slot in [slot for slot in delta.increases if slot[0] == measure]:
        del delta.increases[slot]
