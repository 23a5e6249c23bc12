"""What is recorded by namespace too: the ratios that say who reuses what, and their sides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.measures import RATIOS

if TYPE_CHECKING:
    from prefix_cache_exporter.measures import Family, Ratio

_RATIOS = ("usage_population_hit", "usage_request_hit", "usage_request_coverage")


def divisible(ratio: Ratio) -> bool:
    """Whether a ratio is recorded by namespace."""
    return ratio.id in _RATIOS


def divided_family(family: Family) -> bool:
    """Whether a counter is recorded by namespace."""
    return family.plane == "usage" and any(
        family.id in (*ratio.numerator, *ratio.denominator) for ratio in RATIOS if divisible(ratio)
    )
