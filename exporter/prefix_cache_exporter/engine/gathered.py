"""Where the samples of a page go, and what has come together there."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .reading import EngineKey, Group, Series
    from .records import Entry

EXACT = 2.0**53
"""Beyond it a float no longer knows single tokens, so that increases cannot be told. No engine counts so far."""
DEFAULT_ENGINE = "0"
"""The rank of an engine whose page has no ranks."""


class Slot(NamedTuple):
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


@dataclass(slots=True)
class Gathered:
    """Samples of a page by where they go, before anything is concluded from them.

    Attributes:
        groups: counters as they stand.
        created: their start times.
        gauges: levels of one measure, group and own label.
        infos: labels of the info series.
        held: measures, families and engines that had a sample.
        refused: by measure and engine, why a number was not taken.
        merged: labels seen that only tell processes apart.
    """

    groups: dict[Group, dict[Series, float]] = field(default_factory=dict)
    created: defaultdict[Group, dict[Series, float]] = field(default_factory=lambda: defaultdict(dict))
    gauges: defaultdict[tuple[str, Group, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    infos: dict[int, Mapping[str, str]] = field(default_factory=dict)
    held: set[tuple[str, str, EngineKey]] = field(default_factory=set)
    refused: dict[tuple[str, EngineKey], str] = field(default_factory=dict)
    merged: set[str] = field(default_factory=set)

    def add_level(self, slot: Slot, labels: Mapping[str, str], value: float) -> None:
        """Takes a sample that is no counter."""
        if slot.entry.kind == "gauge":
            self.gauges[slot.entry.measure, slot.group, slot.series.by].append(value)
            self.merged.update(slot.merged)
        else:
            self.infos[id(labels)] = labels
