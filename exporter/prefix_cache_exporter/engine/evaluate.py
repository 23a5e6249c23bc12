"""A page, through its map, to canonical numbers per engine: counters as they stand, gauges combined, what is withheld.

Counters keep the labels that split them (processes, replicas), because restarts are recognised per series group before
anything is added up; `deltas` adds them. Gauges are combined here.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

from .maps import HASH_ALGORITHM, MEASURES
from .verify import State, is_older, verify

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from .maps import Entry
    from .page import Page, PageFamily, Sample
    from .plan import Plan

_DEFAULT_ENGINE = "0"
_NOT_SAID = ("", "None")
_TRUTH = {"True": 1.0, "False": 0.0}
_EXACT = 2.0**53
"""Beyond it a float no longer knows single tokens, so that increases cannot be told. No engine counts so far."""
_REMEMBERED = 20_000
"""Series remembered before all are forgotten: far more than a page has, unless its series change at every poll."""


class EngineKey(NamedTuple):
    """An engine of a page: its data-parallel rank, and the model it serves."""

    engine: str
    model: str


class Group(NamedTuple):
    """Series that live and restart together: an engine, and what else tells replicas or processes apart."""

    engine: str
    model: str
    rest: tuple[tuple[str, str], ...]

    @property
    def key(self) -> EngineKey:
        """The engine."""
        return EngineKey(self.engine, self.model)


class Series(NamedTuple):
    """One counter within a group.

    Attributes:
        measure: the measure or piece of evidence that it feeds.
        family: name on the page.
        by: the value of the label that splits the measure, else empty.
        part: for histograms `sum` or the bucket's `le`, else empty.
    """

    measure: str
    family: str
    by: str
    part: str


@dataclass(frozen=True, slots=True)
class Reading:
    """What one page says.

    Attributes:
        plan: how it was read; None where the version is unknown.
        state: as verified.
        reasons: what did not agree, or why nothing was read.
        contradicted: whether nothing may be used.
        groups: counters as they stand on the page.
        created: start times of counters, where the page has them.
        started: start time of the engine's process, in seconds since 1970, where the page has it.
        gauges: by engine and measure; a mapping where a label splits the measure.
        names: by engine, measures that are names (the hash algorithm).
        factors: by engine, what one count of a measure is in its own unit, where that is not 1.
        withheld: by measure, why no engine has it.
        engine_withheld: the same for single engines.
        info: by engine, the labels of its info families.
        labels: label names that tell processes apart and were seen.
    """

    plan: Plan | None
    state: State
    reasons: tuple[str, ...] = ()
    contradicted: bool = False
    groups: Mapping[Group, dict[Series, float]] = field(default_factory=dict)
    created: Mapping[Group, dict[Series, float]] = field(default_factory=dict)
    started: float | None = None
    gauges: Mapping[EngineKey, dict[str, float | dict[str, float]]] = field(default_factory=dict)
    names: Mapping[EngineKey, dict[str, str]] = field(default_factory=dict)
    factors: Mapping[EngineKey, dict[str, float]] = field(default_factory=dict)
    withheld: Mapping[str, str] = field(default_factory=dict)
    engine_withheld: Mapping[EngineKey, dict[str, str]] = field(default_factory=dict)
    info: Mapping[EngineKey, Mapping[str, str]] = field(default_factory=dict)
    labels: frozenset[str] = frozenset()

    @property
    def usable(self) -> bool:
        """Whether any number may be taken from the page."""
        return self.plan is not None and not self.contradicted

    @property
    def engines(self) -> list[EngineKey]:
        """Engines of the page, in order of rank."""
        keys = {group.key for group in self.groups} | set(self.gauges)
        return sorted(keys, key=lambda key: (len(key.engine), key))

    def reason(self, measure: str, key: EngineKey) -> str | None:
        """Why a measure is withheld for an engine, or None."""
        return self.withheld.get(measure) or self.engine_withheld.get(key, {}).get(measure)


def unknown_reading(reason: str) -> Reading:
    """The reading of a page whose version is unknown, or was said in two ways: nothing."""
    state: State = "mismatch" if reason == "version_mismatch" else "unknown"
    return Reading(None, state, (reason,), contradicted=True, withheld=dict.fromkeys(MEASURES, reason))


class _Slot(NamedTuple):
    """Where one sample goes."""

    entry: Entry
    group: Group
    series: Series
    held: tuple[str, str, EngineKey]
    """Measure, family and engine: what is known once such a sample was there."""
    counts: bool
    """Whether it is a counter or part of a histogram."""
    merged: frozenset[str]
    """Labels of it that only tell processes apart."""


class Evaluator:
    """Evaluates pages of one target, faster after the first: it remembers what each series is."""

    def __init__(self) -> None:
        self._plan: Plan | None = None
        self._slots: dict[tuple[int, str], tuple[Mapping[str, str], tuple[_Slot, ...]]] = {}
        self._starts: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[_Slot, ...]] = {}

    def read(self, plan: Plan, page: Page) -> Reading:
        """Evaluates one page."""
        if plan is not self._plan or len(self._slots) + len(self._starts) > _REMEMBERED:
            self._plan, self._slots, self._starts = plan, {}, {}
        verification = verify(plan, page)
        if verification.contradicted:
            return Reading(
                plan,
                verification.state,
                verification.reasons,
                contradicted=True,
                withheld=dict.fromkeys(MEASURES, "mismatch"),
            )
        gathered = _Gathered()
        for name in plan.targets:
            family = page.families.get(name)
            if family is not None:
                self._gather(family, gathered)
        return _settle(plan, page, gathered, verification.state, verification.reasons)

    def _gather(self, family: PageFamily, into: _Gathered) -> None:
        slots = self._slots
        groups, held = into.groups, into.held
        for sample in family.samples:
            labels = sample.labels
            known = slots.get((id(labels), sample.name))
            if known is None or known[0] is not labels:
                known = slots[id(labels), sample.name] = (labels, tuple(self._learn(family.name, sample)))
            value = sample.value
            for slot in known[1]:
                if not slot.counts:
                    into.add_level(slot, labels, value)
                elif 0 <= value <= _EXACT:
                    group = groups.get(slot.group)
                    if group is None:
                        group = groups[slot.group] = {}
                    group[slot.series] = group.get(slot.series, 0.0) + value
                    held.add(slot.held)
                else:
                    into.refused[slot.entry.measure, slot.group.key] = _why_refused(value)
        for key, moment in family.created.items():
            starts = self._starts.get((family.name, key))
            if starts is None:
                starts = self._starts[family.name, key] = tuple(self._learn_start(family.name, dict(key)))
            for slot in starts if isfinite(moment) else ():
                into.created[slot.group][slot.series] = moment

    def _learn_start(self, family: str, labels: Mapping[str, str]) -> Iterator[_Slot]:
        for entry in self._targets(family):
            yield from self._slot(entry, family, labels, "")

    def _targets(self, family: str) -> tuple[Entry, ...]:
        return self._plan.targets[family] if self._plan else ()

    def _learn(self, family: str, sample: Sample) -> Iterator[_Slot]:
        suffix = sample.name[len(family) :]
        for entry in self._targets(family):
            part = ""
            if entry.kind == "histogram":
                if entry.part:
                    if suffix != f"_{entry.part}":
                        continue
                elif suffix == "_bucket":
                    part = sample.labels.get("le", "")
                elif suffix == "_sum":
                    part = "sum"
                else:  # `_count` is the last bucket
                    continue
            yield from self._slot(entry, family, sample.labels, part)

    def _slot(self, entry: Entry, family: str, labels: Mapping[str, str], part: str) -> Iterator[_Slot]:
        plan = self._plan
        if plan is None or any(labels.get(label) != value for label, value in entry.where.items()):
            return
        dialect = plan.dialect
        told = {dialect.engine_label, dialect.model_label, "le", entry.by, *entry.where}
        if entry.kind == "gauge":
            told.update(dialect.merged_labels)
        rest = tuple(sorted((name, value) for name, value in labels.items() if name not in told and value))
        key = EngineKey(labels.get(dialect.engine_label) or _DEFAULT_ENGINE, labels.get(dialect.model_label, ""))
        by = labels.get(entry.by, "") if entry.by else ""
        series, held = Series(entry.measure, family, by, part), (entry.measure, family, key)
        merged = frozenset(dialect.merged_labels) & frozenset(labels)
        yield _Slot(entry, Group(*key, rest), series, held, entry.kind in ("counter", "histogram"), merged)


@dataclass(slots=True)
class _Gathered:
    groups: dict[Group, dict[Series, float]] = field(default_factory=dict)
    created: defaultdict[Group, dict[Series, float]] = field(default_factory=lambda: defaultdict(dict))
    gauges: defaultdict[tuple[str, Group, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    infos: dict[int, Mapping[str, str]] = field(default_factory=dict)
    held: set[tuple[str, str, EngineKey]] = field(default_factory=set)
    refused: dict[tuple[str, EngineKey], str] = field(default_factory=dict)
    merged: set[str] = field(default_factory=set)

    def add_level(self, slot: _Slot, labels: Mapping[str, str], value: float) -> None:
        if slot.entry.kind == "gauge":
            self.gauges[slot.entry.measure, slot.group, slot.series.by].append(value)
            self.merged.update(slot.merged)
        else:
            self.infos[id(labels)] = labels


@dataclass(slots=True)
class _Settled:
    gauges: defaultdict[EngineKey, dict[str, float | dict[str, float]]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    names: defaultdict[EngineKey, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    withheld: defaultdict[EngineKey, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))


def _settle(plan: Plan, page: Page, gathered: _Gathered, state: State, reasons: tuple[str, ...]) -> Reading:
    uncounted = set(_uncounted(plan, page))
    _count_zero(plan, uncounted, gathered)
    withheld = {
        measure: why for measure, why in _withheld(plan, page) if measure not in uncounted or why != "no_series"
    }
    settled = _Settled()
    gauges, engine_withheld = settled.gauges, settled.withheld
    _settle_gauges(plan, gathered, settled)
    keys = {group.key for group in gathered.groups} | set(gauges) | set(engine_withheld)
    if gathered.infos and not keys:
        keys = {EngineKey(_DEFAULT_ENGINE, "")}
    info = _settle_infos(plan, gathered, keys)
    for measure, entry in plan.dialect.entries.items():
        if entry.kind == "info" and measure not in withheld:
            for key in keys:
                _take_info(entry, info.get(key, []), key, settled)
    factors = _factors(plan, keys, settled)
    for measure, families in plan.families.items():
        if plan.dialect.entries[measure].kind in ("counter", "histogram") and measure not in withheld:
            for key in keys:
                if any((measure, family, key) not in gathered.held for family in families):
                    engine_withheld[key].setdefault(measure, "no_series")
    for (measure, key), reason in gathered.refused.items():
        engine_withheld[key][measure] = reason
    _lift(withheld, engine_withheld, keys)
    return Reading(
        plan,
        state,
        reasons,
        groups=gathered.groups,
        created=gathered.created,
        started=_started(plan, page),
        gauges=gauges,
        names=settled.names,
        factors=factors,
        withheld=withheld,
        engine_withheld=engine_withheld,
        info={key: labels[0] for key, labels in info.items() if labels},
        labels=frozenset(gathered.merged),
    )


def _uncounted(plan: Plan, page: Page) -> Iterator[str]:
    """Counters whose absence from a page is the 0 they stand at.

    Where a series first appears when it is first counted, a page that shows everything else of its release has counted
    nothing of what it does not show. An excerpt, or a page of another release, says nothing by an absence.
    """
    if not plan.lazy or not plan.whole or not plan.whole <= page.names or is_older(plan, page):
        return
    for measure, entry in plan.dialect.entries.items():
        if entry.kind == "counter" and not entry.by and not entry.gate:
            yield measure


def _count_zero(plan: Plan, measures: Iterable[str], gathered: _Gathered) -> None:
    series = [Series(measure, family, "", "") for measure in measures for family in plan.families[measure]]
    for group, values in gathered.groups.items():
        for each in series:
            if each not in values and (each.measure, group.key) not in gathered.refused:
                values[each] = 0.0
                gathered.held.add((each.measure, each.family, group.key))


def _why_refused(value: float) -> str:
    """Why a number is none that a counter can stand at."""
    if not isfinite(value):
        return "not_finite"
    return "negative" if value < 0 else "too_large"


def _started(plan: Plan, page: Page) -> float | None:
    """When the engine's process started, where the page says one moment."""
    family = page.families.get(plan.start) if plan.start else None
    moments = {sample.value for sample in family.samples} if family else set()
    return moments.pop() if len(moments) == 1 and all(map(isfinite, moments)) else None


def _withheld(plan: Plan, page: Page) -> Iterator[tuple[str, str]]:
    """Measures that no engine of the page has, and why."""
    for measure in MEASURES:
        entry = plan.dialect.entries.get(measure)
        if entry is None:
            yield measure, "not_exposed"
            continue
        if entry.withheld:
            yield measure, entry.withheld
            continue
        found = [page.families.get(name) for name in plan.families[measure]]
        if None in found:
            yield measure, f"gated:{entry.gate}" if entry.gate else "no_series" if plan.lazy else "missing"
        elif not all(family and family.samples for family in found):
            yield measure, "no_series"


def _settle_gauges(plan: Plan, gathered: _Gathered, settled: _Settled) -> None:
    gauges, withheld = settled.gauges, settled.withheld
    beside: defaultdict[tuple[str, EngineKey, str], list[float]] = defaultdict(list)
    splits: defaultdict[tuple[EngineKey, str], dict[str, float]] = defaultdict(dict)
    for (measure, group, by), values in gathered.gauges.items():
        # Of one engine's processes the one that knows says more than the stale zeros of the others.
        beside[measure, group.key, by].append(max(values) if all(map(isfinite, values)) else float("nan"))
    for (measure, key, by), values in beside.items():
        entry = plan.dialect.entries[measure]
        value = combine(values, entry.combine)
        if entry.disabled is not None and entry.disabled in values:
            withheld[key][measure] = "disabled"
        elif value is None:
            withheld[key][measure] = "ambiguous"
        elif not isfinite(value):
            withheld[key][measure] = "not_finite"
        elif entry.by:
            gauges[key][measure] = splits[key, measure]
            splits[key, measure][by] = value
        else:
            gauges[key][measure] = value


def combine(values: Iterable[float], how: str) -> float | None:
    """Values that stand beside each other as one; None where they should be the same and are not."""
    values = list(values)
    if how == "same":
        return values[0] if len(set(values)) == 1 else None
    return sum(values) / len(values) if how == "mean" else sum(values)


def _settle_infos(
    plan: Plan, gathered: _Gathered, keys: Iterable[EngineKey]
) -> dict[EngineKey, list[Mapping[str, str]]]:
    """The info labels of each engine. A series without rank or model speaks for all of them."""
    series = gathered.infos.values()
    engine, model = plan.dialect.engine_label, plan.dialect.model_label
    return {
        key: [
            labels
            for labels in series
            if labels.get(engine, key.engine) == key.engine and labels.get(model, key.model) == key.model
        ]
        for key in keys
    }


def _take_info(entry: Entry, info: Iterable[Mapping[str, str]], key: EngineKey, settled: _Settled) -> None:
    withheld = settled.withheld
    texts = {labels.get(entry.label or "", "") for labels in info}
    text = texts.pop() if len(texts) == 1 else ""
    if texts:
        withheld[key][entry.measure] = "ambiguous"
    elif text in _NOT_SAID:
        withheld[key][entry.measure] = "not_reported"
    elif entry.measure == HASH_ALGORITHM:
        settled.names[key][entry.measure] = text
    else:
        number = _TRUTH.get(text) if entry.unit == "1" else _number(text)
        if number is None:
            withheld[key][entry.measure] = "not_a_number"
        else:
            settled.gauges[key][entry.measure] = number


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) and number > 0 else None


def _factors(plan: Plan, keys: Iterable[EngineKey], settled: _Settled) -> dict[EngineKey, dict[str, float]]:
    """What one count is in the measure's own unit; applied here to gauges, by `deltas` to counters."""
    gauges, withheld = settled.gauges, settled.withheld
    factors: dict[EngineKey, dict[str, float]] = {}
    for measure, entry in plan.dialect.entries.items():
        for name in entry.times:
            for key in keys:
                factor = gauges.get(key, {}).get(name)
                count = gauges.get(key, {}).get(measure)
                if not isinstance(factor, float):
                    withheld[key].setdefault(measure, f"{name.removesuffix('_tokens')}_unknown")
                    gauges[key].pop(measure, None)
                elif isinstance(count, float):
                    gauges[key][measure] = count * factor
                else:
                    factors.setdefault(key, {})[measure] = factor
    return factors


def _lift(
    withheld: dict[str, str], engine_withheld: Mapping[EngineKey, Mapping[str, str]], keys: set[EngineKey]
) -> None:
    """What every engine lacks for the same reason is lacking on the page."""
    for measure in MEASURES:
        reasons = {engine_withheld.get(key, {}).get(measure) for key in keys}
        if len(reasons) == 1 and (reason := reasons.pop()):
            withheld.setdefault(measure, reason)
