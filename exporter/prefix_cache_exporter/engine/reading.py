"""What one page says, as plain data: counters as they stand on it, levels, names, and what is withheld."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from .records import MEASURES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .plan import Plan
    from .verify import State


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
