"""The same by namespace, for the ratios that say who reuses what; the revision's sums are then made of these."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.measures import USAGE
from prefix_cache_exporter.pack import queries
from prefix_cache_exporter.pack.model import Record

from . import rates
from .division import divided_family

if TYPE_CHECKING:
    from prefix_cache_exporter.pack.names import Names


def short(names: Names) -> tuple[Record, ...]:
    """Rates and ratios over the short window; nothing where the pack file does not ask for namespaces."""
    if not names.settings.namespaces:
        return ()
    window, rules = names.settings.windows.short, []
    for family in filter(divided_family, rates.counters("usage")):
        series = names.rate(family, window, level="namespace")
        summed = queries.total(series.labels, queries.rate(family, window, names.settings.selector))
        whole = (
            names.rate(USAGE[id_], window, level="namespace")
            for id_ in rates.whole_of("usage", family.id)
            if divided_family(USAGE[id_])
        )
        rules.append(Record(series, queries.either(summed, *(f"{other} * 0" for other in whole))))
    return (*rules, *rates.ratios(names, "usage", window, "namespace"))


def longer(names: Names) -> tuple[Record, ...]:
    """Rates and ratios over the long window and the day."""
    if not names.settings.namespaces:
        return ()
    windows, rules = names.settings.windows, list[Record]()
    for window in (windows.long, windows.day):
        for family in filter(divided_family, rates.counters("usage")):
            rules.append(rates.mean_over(names, names.rate(family, windows.short, level="namespace"), window))
        rules += rates.ratios(names, "usage", window, "namespace")
    return tuple(rules)
