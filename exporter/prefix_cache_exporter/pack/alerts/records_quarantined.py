"""Usage records come that cannot be decided: a format has changed, or is not what the configuration says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.pack import queries
from prefix_cache_exporter.pack.alerts import dashboards, text
from prefix_cache_exporter.pack.durations import Duration
from prefix_cache_exporter.pack.model import Alert
from prefix_cache_exporter.pack.records import exporter

if TYPE_CHECKING:
    from prefix_cache_exporter.pack.names import Names

NAME = "PrefixCacheRecordsQuarantined"


def alerts(names: Names) -> tuple[Alert, ...]:
    """A share of records, and at least a few."""
    settings = names.settings
    long = settings.windows.long
    all_bad = exporter.all_quarantined(names)
    floor = f"{all_bad} * {queries.number(long.seconds)} >= {queries.number(settings.floors.records)}"
    return (
        Alert(
            name=NAME,
            expr=(
                f"({exporter.quarantined_share(names)} > {queries.number(settings.thresholds.quarantined)})\n"
                f"and ({floor})"
            ),
            labels=names.labels("source"),
            severity="warning",
            hold=Duration.parse("15m"),
            keep=Duration.parse("15m"),
            summary="Usage records cannot be decided and are not counted.",
            description=(
                f"Source {{{{ $labels.source }}}}: {text.PERCENT_VALUE} of records in {long} are quarantined"
                f" ({text.value(all_bad, text.TOKENS, long.seconds)}, beside"
                f" {text.value(exporter.requests(names), text.TOKENS, long.seconds)} requests that were counted); they"
                " are on neither side of any ratio of any revision."
            ),
            dashboard=dashboards.EXPORTER,
        ),
    )
