"""One or two bodies through a map, as `maps apply` prints it: the whole engine plane without a poller."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from prefix_cache_exporter.measures import ENGINE

from .deltas import deltas, since_start
from .evaluate import Evaluator
from .page import read_page
from .plan import select_plan
from .reading import unknown_reading
from .records import HASH_ALGORITHM
from .settle import combine
from .snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .delta import Delta, EngineDelta
    from .maps import MapSet
    from .reading import EngineKey, Reading

_INFINITE = "+Inf"
_NOTHING = Snapshot({}, {})
"""An earlier page of which nothing is known, unlike the start, where everything is 0."""


@dataclass(frozen=True, slots=True)
class Application:
    """What a page says.

    Attributes:
        version: as asked for.
        reading: the page's levels.
        delta: its counts, since the engine's start or since the earlier page.
        unusable: why nothing can be counted from the earlier page.
    """

    version: str
    reading: Reading
    delta: Delta
    unusable: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The answer of `maps apply --json`."""
        plan = self.reading.plan
        engines = {self._name(key): self._engine(key) for key in self.reading.engines}
        excluded: dict[str, float] = {}
        for engine in engines.values():
            for reason, tokens in engine["excluded"].items():
                excluded[reason] = excluded.get(reason, 0) + tokens
        totals = self._totals(engines)
        if excluded:
            totals["excluded_prompt_tokens"] = sum(excluded.values())
        return {
            "engine_version": self.version,
            "metric_map": plan.version.name if plan else None,
            "dialect": plan.dialect.name if plan else None,
            "name_style": plan.style.name if plan else None,
            "state": self.reading.state,
            "reasons": [*self.reading.reasons, *(f"previous page: {reason}" for reason in self.unusable)],
            "engines": engines,
            "totals": totals,
            "excluded_prompt_tokens": excluded,
            "withheld": dict(self.delta.withheld),
            "caveats": list(self.delta.caveats),
            "anomalies": dict(self.delta.anomalies),
            "restarts": self.delta.restarts,
        }

    def _name(self, key: EngineKey) -> str:
        """An engine's rank; with its model where two models on a page have engines of one rank."""
        alone = [other.engine for other in self.reading.engines].count(key.engine) == 1
        return key.engine if alone else f"{key.engine}/{key.model}"

    def _engine(self, key: EngineKey) -> dict[str, Any]:
        delta = self.delta.engines.get(key)
        values = {
            **(_counted(delta) if delta else {}),
            **self.reading.gauges.get(key, {}),
            **self.reading.names.get(key, {}),
        }
        excluded = {} if delta is None or delta.excluded is None else {delta.excluded: delta.total("prompt_tokens")}
        return {
            "model": key.model,
            "measures": {measure: self._measure(measure, values[measure]) for measure in _ordered(values)},
            "excluded": {reason: tokens for reason, tokens in excluded.items() if tokens is not None},
            "withheld": dict(sorted(delta.withheld.items())) if delta else {},
        }

    def _measure(self, measure: str, value: Any) -> dict[str, Any]:
        plan = self.reading.plan
        family = " + ".join(plan.families[measure]) if plan else ""
        unit = ENGINE[measure].unit if measure in ENGINE else "name"
        shown: dict[str, Any] = {"value": value, "unit": unit, "family": family}
        if isinstance(value, _Split):
            shown["value"], shown["by"] = sum(value.values()), dict(value)
        return shown

    def _totals(self, engines: Mapping[str, Any]) -> dict[str, Any]:
        """Sums (or means, or what all agree on) of the measures that no engine withholds."""
        found: dict[str, list[Any]] = {}
        for engine in engines.values():
            for measure, shown in engine["measures"].items():
                found.setdefault(measure, []).append(shown["value"])
        plan = self.reading.plan
        totals = {}
        for measure, values in found.items():
            if plan is None or measure in self.delta.withheld or measure == HASH_ALGORITHM:
                continue
            total = _together(values, plan.dialect.entries[measure].combine)
            if total is not None:
                totals[measure] = total
        return totals


class _Split(dict[str, float]):
    """A counter by the label that splits it."""


def apply_page(
    maps: MapSet,
    version: str,
    body: bytes,
    previous: bytes | None = None,
    *,
    content_type: str | None = None,
    dialect: str = "auto",
    style: str = "auto",
) -> Application:
    """Reads a body, and if there is an earlier one, what was counted between both.

    Raises:
        PageError: where a body is not one whole page.
        UnknownChoiceError: where the version has no such dialect or name style.
    """
    bodies = (body,) if previous is None else (body, previous)
    read = partial(read_body, maps, version, content_type=content_type, dialect=dialect, style=style)
    return apply_readings(version, *map(read, bodies))


def read_body(
    maps: MapSet,
    version: str,
    body: bytes,
    *,
    content_type: str | None = None,
    dialect: str = "auto",
    style: str = "auto",
) -> Reading:
    """Reads one body through the map of a version.

    Raises:
        PageError: where it is not one whole page.
        UnknownChoiceError: where the version has no such dialect or name style.
    """
    resolved = maps.resolve(version)
    page = read_page(body, content_type, () if resolved is None else resolved.wanted)
    if resolved is None:
        return unknown_reading("unknown_version")
    return Evaluator().read(select_plan(resolved, page, dialect=dialect, style=style), page)


def apply_readings(version: str, reading: Reading, earlier: Reading | None = None) -> Application:
    """What a reading says by itself, or since an earlier one of the same version."""
    if earlier is None:
        return Application(version, reading, since_start(reading))
    _, snapshot = deltas(None, earlier)
    # Two pages are all there is, so what a next one would show is decided at once.
    delta, _ = deltas(snapshot or _NOTHING, reading, final=True)
    return Application(version, reading, delta, () if earlier.usable else earlier.reasons)


def _counted(delta: EngineDelta) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for (measure, by, part), amount in delta.increases.items():
        if part:
            histogram = values.setdefault(measure, {"count": 0, "sum": 0.0, "buckets": {}})
            if part == "sum":
                histogram["sum"] += amount
            else:
                histogram["buckets"][part] = amount
                histogram["count"] = amount if part == _INFINITE else histogram["count"]
        elif by:
            values.setdefault(measure, _Split())[by] = amount
        else:
            values[measure] = amount
    return values


def _ordered(values: Mapping[str, Any]) -> list[str]:
    order = [*ENGINE, HASH_ALGORITHM]
    return sorted(values, key=order.index)


def _together(values: list[Any], how: str) -> Any:
    """One value of several engines; None where they must agree and do not."""
    if not isinstance(values[0], dict):
        return combine(values, how)
    if "buckets" not in values[0]:
        names = {name: None for value in values for name in value}
        split = {name: combine([value[name] for value in values if name in value], how) for name in names}
        return None if None in split.values() else split
    return {
        "count": sum(value["count"] for value in values),
        "sum": sum(value["sum"] for value in values),
        "buckets": _added(value["buckets"] for value in values),
    }


def _added(buckets: Iterable[Mapping[str, float]]) -> dict[str, float]:
    added: dict[str, float] = {}
    for each in buckets:
        for edge, count in each.items():
            added[edge] = added.get(edge, 0) + count
    return added
