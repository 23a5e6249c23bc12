"""Cache writes cost more than cache reads save."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.pack import queries
from prefix_cache_exporter.pack.alerts import conditions, dashboards, text
from prefix_cache_exporter.pack.durations import Duration
from prefix_cache_exporter.pack.model import Alert
from prefix_cache_exporter.pack.names import RELEASE, ratio_named
from prefix_cache_exporter.pack.records import baseline, cost

if TYPE_CHECKING:
    from prefix_cache_exporter.pack.names import Names

NAME = "PrefixCacheWritesNotPaidBack"


def alerts(names: Names) -> tuple[Alert, ...]:
    """The input costs more than it would have without caching, and writes are part of it."""
    settings = names.settings
    long = settings.windows.long
    net = names.ratio(ratio_named("usage_net_input_cost"), long)
    writes = queries.total(net.labels, queries.select(cost.components(names), 'component="write"'))
    over = f"{queries.select(net, baseline.ONE_REVISION)} > {queries.number(settings.thresholds.net_input_cost)}"

    def amount(series: str, component: str = "") -> str:
        of = {"paid": cost.input_cost(names), "without": cost.counterfactual(names), "part": cost.components(names)}
        fixed = {"component": component} if component else None
        return text.value(of[series], text.MONEY, long.seconds, fixed)

    return (
        Alert(
            name=NAME,
            expr=f"({over})\nand ({writes} > 0)\nand {conditions.enough_requests(names, cost.priced(names))}",
            labels=(*RELEASE, *settings.labels.extra, *cost.CURRENCY),
            severity="warning",
            hold=Duration.parse("30m"),
            keep=Duration.parse("30m"),
            summary="Cache writes cost more than cache reads save.",
            description=(
                f"{text.REVISION} has a net input cost ratio of {text.PERCENT_VALUE} in {long}: {amount('paid')}"
                f" {{{{ $labels.currency }}}} paid against a baseline of {amount('without')} without caching"
                f" ({amount('part', 'write')} for writes, {amount('part', 'read')} for reads; 100% would"
                " be break-even)."
            ),
            dashboard=dashboards.USAGE,
        ),
    )
