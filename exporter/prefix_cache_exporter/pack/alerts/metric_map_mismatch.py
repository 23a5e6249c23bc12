"""An engine's page contradicts its metric map: its measures are withheld."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.pack import queries
from prefix_cache_exporter.pack.alerts import dashboards, text
from prefix_cache_exporter.pack.durations import Duration
from prefix_cache_exporter.pack.model import Alert
from prefix_cache_exporter.pack.records import exporter

if TYPE_CHECKING:
    from prefix_cache_exporter.pack.names import Names

NAME = "PrefixCacheMetricMapMismatch"


def alerts(names: Names) -> tuple[Alert, ...]:
    """No ratio can be given in the description: that is the point."""
    state = exporter.map_state(names)
    return (
        Alert(
            name=NAME,
            expr=queries.select(state, 'state="mismatch"') + " > 0",
            labels=state.labels,
            severity="warning",
            hold=Duration.parse("10m"),
            summary="An engine's metrics page contradicts the map of its version; its ratios are withheld.",
            description=(
                'Source {{ $labels.source }}: the page of {{ $value | printf "%.0f" }} of'
                f" {text.value(exporter.engines(names), text.TOKENS)} engines does not fit its metric map. Numerator"
                " and denominator of their ratios are withheld, not guessed, so no baseline or revision is judged."
            ),
            dashboard=dashboards.EXPORTER,
        ),
    )
