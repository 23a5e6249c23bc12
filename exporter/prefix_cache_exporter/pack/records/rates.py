"""Sums over pods of every counter of a plane, and the ratios made of them, over three windows.

Only the short window reads pods. The longer ones are means of what it recorded: their cost does not depend on pods, and
a time in which a series was absent counts as 0 on both sides of a ratio.
"""

from __future__ import annotations

from graphlib import TopologicalSorter
from typing import TYPE_CHECKING

from prefix_cache_exporter import measures
from prefix_cache_exporter.pack import queries
from prefix_cache_exporter.pack.model import Record
from prefix_cache_exporter.pack.names import families, kept_labels, ratio_kept

from .division import divided_family, divisible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prefix_cache_exporter.measures import Family, Ratio
    from prefix_cache_exporter.pack.durations import Duration
    from prefix_cache_exporter.pack.model import Series
    from prefix_cache_exporter.pack.names import Names


def short(names: Names, plane: str) -> tuple[Record, ...]:
    """Rates and ratios over the short window."""
    window = names.settings.windows.short
    rules = [_summed(names, family) for family in counters(plane)]
    return (*rules, *coarser(names, plane, window), *ratios(names, plane, window))


def longer(names: Names, plane: str) -> tuple[Record, ...]:
    """Rates and ratios over the long window and the day."""
    rules: list[Record] = []
    for window in (names.settings.windows.long, names.settings.windows.day):
        rules += [
            mean_over(names, names.rate(family, names.settings.windows.short), window) for family in counters(plane)
        ]
        rules += [*coarser(names, plane, window), *ratios(names, plane, window)]
    return tuple(rules)


def counters(plane: str) -> list[Family]:
    """Counters of a plane that carry a release, in an order in which each can be completed from those before it."""
    known = {
        id_: family
        for id_, family in families(plane).items()
        if family.kind == "counter" and "template_revision" in family.labels
    }
    wholes = TopologicalSorter({id_: set(whole_of(plane, id_)) for id_ in known})
    return [known[id_] for id_ in wholes.static_order()]


def whole_of(plane: str, id_: str) -> list[str]:
    """Measures beside which a measure that was never counted is 0: the rest of a whole that it is a part of."""
    return [
        other
        for ratio in measures.RATIOS
        if ratio.plane == plane and ratio.part and id_ in ratio.numerator
        for other in ratio.denominator
        if other != id_
    ]


def mean_over(names: Names, series: Series, window: Duration) -> Record:
    """The mean of a recorded short-window rate over a longer window.

    The range is half an interval shorter than the window, so that it holds the same number of samples whether ranges
    include their older end (Prometheus 2) or not (3: https://prometheus.io/docs/prometheus/latest/migration/).
    """
    interval = names.settings.interval
    operation = f"rate{names.settings.windows.short}"
    recorded = type(series)(series.name.removesuffix(operation) + f"rate{window}", series.labels, "rate")
    samples = over(names, window)
    return Record(recorded, f"sum_over_time({series}[{samples}]) / {window.per(interval)}")


def over(names: Names, window: Duration) -> Duration:
    """A range that holds exactly the samples that rules record in a window, in whole intervals."""
    interval = names.settings.interval
    return type(window)(window.per(interval) * interval.milliseconds - interval.milliseconds // 2)


def coarser(names: Names, plane: str, window: Duration) -> Iterator[Record]:
    """Sums over a kept label that only one side of a ratio has: cost components, so that costs can be divided."""
    done: set[str] = set()
    for ratio in (ratio for ratio in measures.RATIOS if ratio.plane == plane):
        for id_ in (*ratio.numerator, *ratio.denominator):
            family, kept = families(plane)[id_], ratio_kept(ratio)
            if kept_labels(family) != kept and id_ not in done:
                done.add(id_)
                coarse = names.rate(family, window, kept=kept)
                yield Record(coarse, queries.total(coarse.labels, names.rate(family, window).name))


def ratios(names: Names, plane: str, window: Duration, level: str = "template_revision") -> Iterator[Record]:
    """The catalogue's ratios from recorded rates."""
    for ratio in (ratio for ratio in measures.RATIOS if ratio.plane == plane):
        if level == "template_revision" or divisible(ratio):
            yield Record(names.ratio(ratio, window, level=level), divided(names, ratio, window, level))


def divided(names: Names, ratio: Ratio, window: Duration, level: str) -> str:
    """Numerator over guarded denominator, both from recorded rates of one level and window."""
    kept = ratio_kept(ratio)
    sides = []
    for side in (ratio.numerator, ratio.denominator):
        parts = [names.rate(families(ratio.plane)[id_], window, level=level, kept=kept).name for id_ in side]
        expr = parts[0]
        for part in parts[1:]:
            expr = queries.known_sum(expr, part)
        sides.append(expr)
    return queries.ratio(*sides)


def _summed(names: Names, family: Family) -> Record:
    window, plane = names.settings.windows.short, family.plane
    series = names.rate(family, window)
    if names.settings.namespaces and divided_family(family):
        read = names.rate(family, window, level="namespace").name
    else:
        read = queries.rate(family, window, names.settings.selector)
    whole = (names.rate(families(plane)[id_], window) for id_ in whole_of(plane, family.id))
    return Record(series, queries.either(queries.total(series.labels, read), *(f"{other} * 0" for other in whole)))
