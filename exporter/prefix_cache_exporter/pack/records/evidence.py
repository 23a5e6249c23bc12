"""Both planes over the same traffic, at the labels in which they can be compared; never added."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.pack import queries
from prefix_cache_exporter.pack.model import Record
from prefix_cache_exporter.pack.names import families, ratio_named

from .baseline import ONE_REVISION, POPULATION

if TYPE_CHECKING:
    from prefix_cache_exporter.pack.model import Series
    from prefix_cache_exporter.pack.names import Names


def ratio(names: Names, plane: str) -> Series:
    """Population hit ratio of one plane over the long window."""
    return names.ratio(ratio_named(POPULATION[plane]), names.settings.windows.long, level="evidence")


def tokens(names: Names, plane: str, side: str) -> Series:
    """Tokens per second of one side of that ratio."""
    (id_,) = getattr(ratio_named(POPULATION[plane]), side)
    return names.rate(families(plane)[id_], names.settings.windows.long, level="evidence")


def records(names: Names) -> tuple[Record, ...]:
    """Rules for both planes."""
    rules: list[Record] = []
    for plane, id_ in POPULATION.items():
        sides = []
        for side in ("numerator", "denominator"):
            (measure,) = getattr(ratio_named(id_), side)
            recorded = names.rate(families(plane)[measure], names.settings.windows.long)
            summed = tokens(names, plane, side)
            rules.append(Record(summed, queries.total(summed.labels, queries.select(recorded, ONE_REVISION))))
            sides.append(summed.name)
        rules.append(Record(ratio(names, plane), queries.ratio(*sides)))
    return tuple(rules)
