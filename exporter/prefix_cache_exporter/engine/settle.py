"""What follows from a page's samples: gauges combined, settings taken from labels, and what is withheld."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING

from .gathered import DEFAULT_ENGINE, EXACT, Gathered
from .lines import number_of
from .reading import EngineKey, Reading, Series
from .records import HASH_ALGORITHM, MEASURES
from .verify import is_older

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from .page import Page
    from .plan import Plan
    from .records import Entry
    from .verify import Verification

_NOT_SAID = ("", "None")
_TRUTH = {"True": 1.0, "False": 0.0}


@dataclass(slots=True)
class _Settled:
    gauges: defaultdict[EngineKey, dict[str, float | dict[str, float]]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    names: defaultdict[EngineKey, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    withheld: defaultdict[EngineKey, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))


def settle(plan: Plan, page: Page, gathered: Gathered, verification: Verification) -> Reading:
    """The reading of a page that does not contradict its map."""
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
        keys = {EngineKey(DEFAULT_ENGINE, "")}
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
    for (measure, key), reason in {**_cut_histograms(plan, gathered), **gathered.refused}.items():
        engine_withheld[key][measure] = reason
    _lift(withheld, engine_withheld, keys)
    return Reading(
        plan,
        verification.state,
        verification.reasons,
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


def _cut_histograms(plan: Plan, gathered: Gathered) -> dict[tuple[str, EngineKey], str]:
    """Histograms without their sum or the bucket that holds everything: what is left of one says something else."""
    cut = {}
    for measure, entry in plan.dialect.entries.items():
        if entry.kind != "histogram" or entry.part or entry.by:
            continue
        for family in plan.families[measure]:
            needed = {Series(measure, family, "", part) for part in ("+Inf", "sum")}
            for group, values in gathered.groups.items():
                # Beside another replica's, a group may have nothing of it yet.
                if not needed <= values.keys() and any(one[:2] == (measure, family) for one in values):
                    cut[measure, group.key] = "incomplete"
    return cut


def _count_zero(plan: Plan, measures: Iterable[str], gathered: Gathered) -> None:
    series = [Series(measure, family, "", "") for measure in measures for family in plan.families[measure]]
    for group, values in gathered.groups.items():
        for each in series:
            if each not in values and (each.measure, group.key) not in gathered.refused:
                values[each] = 0.0
                gathered.held.add((each.measure, each.family, group.key))


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
            yield measure, f"gated:{entry.gate}" if entry.gate else "no_series" if plan.awaits(page) else "missing"
        elif not all(family and family.samples for family in found):
            yield measure, "no_series"


def _settle_gauges(plan: Plan, gathered: Gathered, settled: _Settled) -> None:
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
        elif value < 0:
            withheld[key][measure] = "negative"
        elif value > EXACT:
            withheld[key][measure] = "too_large"
        elif entry.unit == "ratio" and value > 1:
            withheld[key][measure] = "above_one"  # percent, perhaps; no share of anything
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
    plan: Plan, gathered: Gathered, keys: Iterable[EngineKey]
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
    number = number_of(text)
    return number if number is not None and 0 < number <= EXACT else None


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
                elif isinstance(count, float) and count * factor > EXACT:
                    withheld[key][measure] = "too_large"
                    del gauges[key][measure]
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
