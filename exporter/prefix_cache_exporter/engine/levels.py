"""What is true of an engine now: gauges, the map's state, active caveats, withheld measures."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from prefix_cache_exporter.measures import ENGINE
from prefix_cache_exporter.measures import engine as catalogue

from .records import HASH_ALGORITHM
from .settle import combine
from .verify import State

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from prefix_cache_exporter.config.model import EngineSource
    from prefix_cache_exporter.recorder import Recorder

    from .delta import Delta
    from .plan import Plan
    from .reading import EngineKey, Reading

_Row = tuple[dict[str, str], float]
_SWITCH = {1.0: "on", 0.0: "off"}
_VOLATILE = (
    *catalogue.GAUGES,
    *(ENGINE[name] for name in ("info", "map_state", "caveat", "withheld", "unmapped_models")),
)


class Levels:
    """Publishes one source's gauges, and withdraws them when they are stale.

    Args:
        source: the source.
        recorder: shows them.
    """

    def __init__(self, source: EngineSource, recorder: Recorder) -> None:
        self._source, self._recorder = source, recorder
        self._scope = {"source": source.name}
        self._active: dict[str, float] = {}
        self._plan: Plan | None = None

    def set_up(self, up: bool, duration: float) -> None:
        """Whether the last poll gave a page, and how long it took in seconds."""
        self._recorder.set_gauge(ENGINE["up"], self._scope, float(up))
        self._recorder.set_gauge(ENGINE["poll_duration_seconds"], self._scope, duration)

    def set_last_success(self, when: float) -> None:
        """When a poll last gave a page, in seconds since 1970."""
        self._recorder.set_gauge(ENGINE["last_success_timestamp_seconds"], self._scope, when)

    def publish(self, reading: Reading, delta: Delta, now: float) -> None:
        """Shows what a page says; `now` in monotonic seconds."""
        replace, scope = self._recorder.replace_gauges, self._scope
        if reading.usable and reading.plan is not self._plan:
            self._plan = reading.plan
            self._recorder.set_origins(self._source.name, _origins(reading.plan))
        for family in catalogue.GAUGES:
            replace(family, scope, self._gauge(reading, family.id, family.labels[len(catalogue.ENGINE) :]))
        replace(ENGINE["info"], scope, self._info(reading))
        replace(ENGINE["map_state"], scope, [({"state": s}, float(s == reading.state)) for s in get_args(State)])
        replace(ENGINE["caveat"], scope, [({"caveat": id_}, 1.0) for id_ in self._caveats(delta, now)])
        withheld = delta.withheld.items()
        replace(ENGINE["withheld"], scope, [({"measure": name, "reason": why}, 1.0) for name, why in withheld])
        models = self._source.models
        if models:
            named = {*models, *models.values()}
            unmapped = {key.model for key in reading.engines} - named
            replace(ENGINE["unmapped_models"], scope, [({}, float(len(unmapped)))])

    def withdraw(self) -> None:
        """Takes back what can no longer be said to be true."""
        self._active.clear()
        for family in _VOLATILE:
            self._recorder.drop_gauges(family, **self._scope)

    def _labels(self, key: EngineKey) -> dict[str, str]:
        model = self._source.models.get(key.model, key.model)
        return {"provider": self._source.provider, "model": model, "engine": key.engine}

    def _gauge(self, reading: Reading, measure: str, own: tuple[str, ...]) -> Iterator[_Row]:
        """One measure's levels. Engines that configuration gives one name are one, if all of them are known."""
        beside: dict[tuple[tuple[str, str], ...], dict[str, list[float]]] = {}
        unknown = set()
        for key in reading.engines:
            labels = tuple(self._labels(key).items())
            level = reading.gauges.get(key, {}).get(measure)
            if reading.reason(measure, key) is not None or level is None:
                unknown.add(labels)
                continue
            for value, amount in level.items() if isinstance(level, dict) else [("", level)]:
                beside.setdefault(labels, {}).setdefault(value, []).append(amount)
        how = reading.plan.dialect.entries[measure].combine if reading.plan and beside else ""
        for labels in beside.keys() - unknown:
            for value, amounts in beside[labels].items():
                together = combine(amounts, how)
                if together is not None:
                    yield {**dict(labels), **dict.fromkeys(own, value)}, together

    def _info(self, reading: Reading) -> Iterator[_Row]:
        if reading.plan is None:
            return
        common = {"engine_version": reading.plan.version.version, "metric_map": reading.plan.version.name}
        for key in reading.engines:
            enabled = reading.gauges.get(key, {}).get("prefix_caching_enabled")
            switch = _SWITCH.get(enabled, "") if isinstance(enabled, float) else ""
            algorithm = _name(reading.names.get(key, {}))
            yield {**self._labels(key), **common, "prefix_caching": switch, "hash_algorithm": algorithm}, 1.0

    def _caveats(self, delta: Delta, now: float) -> list[str]:
        """Caveats of the last intervals: one of a single interval would pass between two scrapes unseen."""
        self._active.update(dict.fromkeys(delta.caveats, now))
        self._active = {id_: at for id_, at in self._active.items() if now - at <= self._source.stale_seconds}
        return list(self._active)


def _origins(plan: Plan | None) -> dict[str, str]:
    """By family name, the page's families that a plan makes it of, and the map that says so."""
    if plan is None:
        return {}
    families = {**plan.families, "excluded_prompt_tokens": plan.families.get("prompt_tokens", ())}
    return {
        ENGINE[measure].name: f"{' + '.join(sources)} ({plan.version.name})"
        for measure, sources in families.items()
        if sources and measure in ENGINE
    }


def _name(names: Mapping[str, str]) -> str:
    return names.get(HASH_ALGORITHM, "")
