"""Which of an interval's increases are believed: whole numbers that no active caveat invalidates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .caveats import Evidence, holds
from .delta import CACHED, PROMPT
from .flight import requests_in_flight
from .gathered import EXACT
from .parts import EXCEEDS, PAIRS, settle_parts
from .records import MEASURES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .delta import EngineDelta
    from .gains import Gains
    from .plan import Plan
    from .reading import EngineKey, Reading
    from .records import Entry
    from .snapshot import Snapshot

_IMPOSSIBLE = ("not_finite", "negative", "too_large", "torn_histogram")
"""Reasons for withholding that no engine gives by design."""
_WHOLE_UNITS = {"tokens", "requests", "blocks"}


class Judge:
    """Judges the gains of an interval, engine by engine.

    Args:
        plan: what the page's series mean.
        reading: at the interval's end.
        gains: what was gained in it; changed in place.
        previous: the reading at its start; None where there was none.
        final: whether no interval follows.

    Attributes:
        carried: by engine and measure, what is judged together with the next interval.
    """

    def __init__(self, plan: Plan, reading: Reading, gains: Gains, previous: Snapshot | None, *, final: bool) -> None:
        self._reading, self._gains, self._families, self._final = reading, gains, plan.families, final
        self._before: Mapping[EngineKey, float] = {} if previous is None else previous.in_flight
        self._sources: Mapping[str, str] = {} if previous is None else previous.sources
        self.carried: dict[EngineKey, Mapping[str, float]] = {}
        self._held: dict[EngineKey, Mapping[str, float]] = {}
        for key, held in ({} if previous is None else previous.carried).items():
            if key in gains.engines:
                self._held[key] = held
            else:  # an engine that went: nothing explains it any more
                gains.anomalies[EXCEEDS] += 1
        self._caveats = plan.dialect.caveats
        self._entries: dict[str, Entry] = {**plan.dialect.entries, **plan.dialect.evidence}

    def judge(self, key: EngineKey, explained: float) -> None:
        """Holds an engine's sums against the caveats, and decides whether its cached tokens count.

        Args:
            key: the engine.
            explained: prompt tokens that requests in flight could explain at the interval's end.
        """
        delta = self._gains.engines[key]
        for measure in MEASURES:
            reason = self._reading.reason(measure, key)
            if reason:
                delta.withheld[measure] = reason
        refused = set(self._reading.engine_withheld.get(key, {}).values())
        self._gains.anomalies.update(reason for reason in _IMPOSSIBLE if reason in refused)
        self._round(key, delta)
        for measure in delta.withheld:
            delta.drop(measure)
        self._apply_caveats(key, delta, explained)
        self._settle_parts(key, delta)
        if delta.total(PROMPT) is None:
            if delta.total(CACHED) is not None:
                delta.withhold(CACHED, f"{PROMPT}_unknown")
        elif CACHED in delta.withheld:
            delta.excluded = delta.withheld[CACHED]

    def _round(self, key: EngineKey, delta: EngineDelta) -> None:
        """Counts of tokens, requests and observations are whole, or not believed."""
        for (measure, by, part), amount in list(delta.increases.items()):
            entry = self._entries[measure]
            if part == "sum" or (entry.unit not in _WHOLE_UNITS and not part):
                continue
            if not abs(amount) <= EXACT:
                self._gains.refuse(key, measure, "too_large")
            elif not float(amount).is_integer():
                self._gains.refuse(key, measure, "not_whole")
            else:
                delta.increases[measure, by, part] = int(amount)

    def _settle_parts(self, key: EngineKey, delta: EngineDelta) -> None:
        restarted = key in self._gains.restarted
        held = self._held.get(key, {})
        carried, given_up = settle_parts(delta, held, restarted=restarted, final=self._final)
        if carried:
            self.carried[key] = carried
        if given_up:
            self._gains.anomalies[EXCEEDS] += given_up
        doubted = {
            family for part, _ in PAIRS if delta.withheld.get(part) == EXCEEDS for family in self._families[part]
        }
        if CACHED not in delta.withheld and not doubted.isdisjoint(self._families.get(CACHED, ())):
            delta.withhold(CACHED, EXCEEDS)  # made of the same hits
        for part, whole in PAIRS:
            if whole in delta.withheld and delta.total(part) is not None:
                delta.withhold(part, f"{whole}_unknown")
            elif part in delta.withheld and whole not in delta.withheld and self._lacks_for_now(part):
                delta.withhold(whole, f"{part}_unknown")

    def _lacks_for_now(self, measure: str) -> bool:
        """Whether a measure that is withheld is so for an interval; what is on no page is no side of a ratio."""
        return measure in self._sources or measure not in self._reading.withheld

    def _apply_caveats(self, key: EngineKey, delta: EngineDelta, explained: float) -> None:
        reading = self._reading
        sums: dict[str, float] = {}
        for (measure, _, part), amount in delta.increases.items():
            if not part:
                sums[measure] = sums.get(measure, 0) + amount
        evidence = Evidence(
            {**sums, **self._gains.evidence[key]},
            explained,
            self._before.get(key, 0.0),
            requests_in_flight(reading, key) > 0,
            reading.info.get(key, {}),
            reading.labels,
            [engine.engine for engine in reading.engines],
        )
        for caveat in self._caveats.values():
            if not holds(caveat, evidence):
                continue
            delta.caveats.append(caveat.id)
            if caveat.anomaly:
                self._gains.anomalies[caveat.id] += 1
            for measure in caveat.invalidates:
                if measure not in delta.withheld and (sums.get(measure) or not caveat.spares_zero):
                    delta.withhold(measure, caveat.id)
