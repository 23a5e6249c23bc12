"""Each request brings its own beginning: something that changes per request stands in front of what is shared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.pack import queries
from prefix_cache_exporter.pack.alerts import conditions, dashboards, text
from prefix_cache_exporter.pack.durations import Duration
from prefix_cache_exporter.pack.model import Alert
from prefix_cache_exporter.pack.names import RELEASE
from prefix_cache_exporter.pack.records import baseline, fingerprints

if TYPE_CHECKING:
    from prefix_cache_exporter.pack.names import Names

NAME = "PrefixCachePrefixFragmented"


def alerts(names: Names) -> tuple[Alert, ...]:
    """Usage plane: only records carry a leading fingerprint."""
    settings = names.settings
    shared = queries.select(fingerprints.per_request(names), baseline.ONE_REVISION)
    ratio = conditions.population("usage")
    return (
        Alert(
            name=NAME,
            expr=f"{shared} >= {queries.number(settings.thresholds.fragmented)}",
            labels=(*RELEASE, *settings.labels.extra),
            severity="warning",
            hold=Duration.parse("15m"),
            keep=Duration.parse("15m"),
            summary="Leading prompt blocks differ from request to request.",
            description=(
                f"{text.REVISION} has {text.value(fingerprints.distinct(names), text.TOKENS)} leading fingerprints in"
                f" {text.value(fingerprints.requests(names), text.TOKENS)} requests ({text.PERCENT_VALUE}); a shared"
                f" prefix has a few. Population hit ratio:"
                f" {text.value(names.ratio(ratio, settings.windows.short), text.PERCENT)}"
                f" ({conditions.both_sides(names, ratio)})."
            ),
            dashboard=dashboards.RELEASE,
        ),
    )
