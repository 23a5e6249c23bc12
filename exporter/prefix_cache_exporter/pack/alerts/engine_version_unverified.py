"""An engine runs a version that no map was held against."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.pack import queries
from prefix_cache_exporter.pack.alerts import dashboards, text
from prefix_cache_exporter.pack.durations import Duration
from prefix_cache_exporter.pack.model import Alert
from prefix_cache_exporter.pack.records import exporter

if TYPE_CHECKING:
    from prefix_cache_exporter.pack.names import Names

NAME = "PrefixCacheEngineVersionUnverified"


def alerts(names: Names) -> tuple[Alert, ...]:
    """`unverified` is read with the newest map; `unknown` is not read at all."""
    state = exporter.map_state(names)
    return (
        Alert(
            name=NAME,
            expr=queries.select(state, 'state=~"unverified|unknown"') + " > 0",
            labels=state.labels,
            severity="info",
            hold=Duration.parse("15m"),
            summary="An engine runs a version that no metric map was verified against.",
            description=(
                'Source {{ $labels.source }}: the metric map of {{ $value | printf "%.0f" }} of'
                f" {text.value(exporter.engines(names), text.TOKENS)} engines is {{{{ $labels.state }}}}. Where it is"
                " unverified, ratios, their numerators and denominators are read with the newest map while the page"
                " fits it; where it is unknown, they are withheld."
            ),
            dashboard=dashboards.EXPORTER,
        ),
    )
