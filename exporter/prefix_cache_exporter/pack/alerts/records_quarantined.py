"""Records that cannot be decided, lines that give none: a format has changed, or is not what the configuration says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.pack import queries
from prefix_cache_exporter.pack.alerts import dashboards, text
from prefix_cache_exporter.pack.durations import Duration
from prefix_cache_exporter.pack.model import Alert
from prefix_cache_exporter.pack.records import exporter

if TYPE_CHECKING:
    from prefix_cache_exporter.pack.model import Series
    from prefix_cache_exporter.pack.names import Names

NAME = "PrefixCacheRecordsQuarantined"


def alerts(names: Names) -> tuple[Alert, ...]:
    """A share of records or of lines, and at least a few."""
    long = names.settings.windows.long
    bad, gone, lines = exporter.all_quarantined(names), exporter.all_lost(names), exporter.all_lines(names)
    return (
        _alert(
            names,
            "quarantined",
            exporter.quarantined_share(names),
            bad,
            f"records in {long} are quarantined ({text.value(bad, text.TOKENS, long.seconds)}, beside"
            f" {text.value(exporter.requests(names), text.TOKENS, long.seconds)} requests that were counted)",
        ),
        _alert(
            names,
            "lost",
            exporter.lost_share(names),
            gone,
            f"log lines in {long} gave no record though they should have"
            f" ({text.value(gone, text.TOKENS, long.seconds)} of"
            f" {text.value(lines, text.TOKENS, long.seconds)} lines)",
        ),
    )


def _alert(names: Names, reason: str, share: Series, amount: Series, finding: str) -> Alert:
    settings = names.settings
    seconds, floor = queries.number(settings.windows.long.seconds), queries.number(settings.floors.records)
    return Alert(
        name=NAME,
        expr=f"({share} > {queries.number(settings.thresholds.quarantined)})\nand ({amount} * {seconds} >= {floor})",
        labels=names.labels("source"),
        severity="warning",
        hold=Duration.parse("15m"),
        keep=Duration.parse("15m"),
        summary="Usage records cannot be decided and are not counted.",
        description=(
            f"Source {{{{ $labels.source }}}}: {text.PERCENT_VALUE} of {finding}; they are on neither side of any"
            " ratio of any revision."
        ),
        dashboard=dashboards.EXPORTER,
        set_labels={"reason": reason},
    )
