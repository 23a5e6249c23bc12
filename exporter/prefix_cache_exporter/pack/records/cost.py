"""Money per request, from priced requests only, one currency at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.measures import USAGE
from prefix_cache_exporter.pack import queries
from prefix_cache_exporter.pack.model import Record

if TYPE_CHECKING:
    from prefix_cache_exporter.pack.model import Series
    from prefix_cache_exporter.pack.names import Names

CURRENCY = ("currency",)


def input_cost(names: Names) -> Series:
    """Input cost per second over the long window, all components together."""
    return names.rate(USAGE["input_cost"], names.settings.windows.long, kept=CURRENCY)


def components(names: Names) -> Series:
    """The same by component: read, write, uncached."""
    return names.rate(USAGE["input_cost"], names.settings.windows.long)


def counterfactual(names: Names) -> Series:
    """What the same input would have cost without caching."""
    return names.rate(USAGE["counterfactual_input_cost"], names.settings.windows.long)


def priced(names: Names) -> Series:
    """Priced requests per second over the long window."""
    return names.rate(USAGE["priced_requests"], names.settings.windows.long)


def per_request(names: Names) -> Series:
    """Mean input cost of a priced request over the long window."""
    return names.series(
        "template_revision",
        "prefix_cache_usage_input_cost_per_priced_requests",
        f"ratio_rate{names.settings.windows.long}",
        "ratio",
        CURRENCY,
    )


def records(names: Names) -> tuple[Record, ...]:
    """Rules of money beyond the catalogue's ratios."""
    return (Record(per_request(names), queries.ratio(input_cost(names).name, priced(names).name)),)
