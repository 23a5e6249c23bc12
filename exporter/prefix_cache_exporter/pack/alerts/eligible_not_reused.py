"""The shared prefix is reused less while the population looks as before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.pack import queries
from prefix_cache_exporter.pack.alerts import conditions, dashboards, text
from prefix_cache_exporter.pack.durations import Duration
from prefix_cache_exporter.pack.model import Alert
from prefix_cache_exporter.pack.names import RELEASE, ratio_named
from prefix_cache_exporter.pack.records import baseline

if TYPE_CHECKING:
    from prefix_cache_exporter.pack.names import Names

NAME = "PrefixCacheEligibleNotReused"


def alerts(names: Names) -> tuple[Alert, ...]:
    """Usage plane: eligibility is decided record by record."""
    settings, eligible, population = (
        names.settings,
        ratio_named("usage_eligible_prefix"),
        conditions.population("usage"),
    )
    own = baseline.own_best(names, eligible)
    fallen = conditions.below(names, baseline.settled(names, eligible), settings.thresholds.eligible_dropped, own)
    stable = (
        f"({baseline.qualified(names, population)} >= {queries.number(settings.thresholds.stable)}"
        f" * {baseline.own_best(names, population)})"
    )
    return (
        Alert(
            name=NAME,
            expr=f"{fallen}\nand {stable}\nand {conditions.warm_by_now(names)}",
            labels=(*RELEASE, *settings.labels.extra),
            severity="warning",
            hold=Duration.parse("30m"),
            keep=Duration.parse("15m"),
            summary="The shared prefix is reused less while the population hit ratio hides it.",
            description=(
                f"{text.REVISION} has an eligible-prefix effectiveness of {text.PERCENT_VALUE}"
                f" ({conditions.both_sides(names, eligible, 'eligible tokens')}), its own best median was"
                f" {text.value(own, text.PERCENT)}; the population hit ratio is stable at"
                f" {text.value(names.ratio(population, settings.windows.short), text.PERCENT)}"
                f" ({conditions.both_sides(names, population)}). The other way round (effectiveness stable,"
                f" population ratio falling) would mean that the mix of requests changed, not the reuse of the prefix."
            ),
            dashboard=dashboards.USAGE,
        ),
    )
