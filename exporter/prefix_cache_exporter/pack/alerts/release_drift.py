"""One template revision is served with two fingerprints: what was pinned together has come apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.pack import queries
from prefix_cache_exporter.pack.alerts import conditions, dashboards, text
from prefix_cache_exporter.pack.durations import Duration
from prefix_cache_exporter.pack.model import Alert
from prefix_cache_exporter.pack.names import RELEASE
from prefix_cache_exporter.pack.records import baseline, releases

if TYPE_CHECKING:
    from prefix_cache_exporter.pack.names import Names

NAME = "PrefixCacheReleaseDrift"


def alerts(names: Names) -> tuple[Alert, ...]:
    """One rule per kind of fingerprint."""
    return tuple(_alert(names, label) for label in releases.FINGERPRINTS)


def _alert(names: Names, label: str) -> Alert:
    settings = names.settings
    kind = label.removesuffix("_fingerprint")

    def seen(plane: str) -> str:
        ratio = conditions.population(plane)
        shown = text.value(names.ratio(ratio, settings.windows.short), text.PERCENT)
        return f"{shown} in the {plane} plane ({conditions.both_sides(names, ratio)})"

    return Alert(
        name=NAME,
        expr=f"{queries.select(releases.fingerprints(names, label), baseline.ONE_REVISION)} > 1",
        labels=(*RELEASE, *settings.labels.extra),
        severity="warning",
        hold=Duration.parse("15m"),
        summary="One template revision is served with different fingerprints.",
        description=(
            f'{text.REVISION} is served with {{{{ $value | printf "%.0f" }}}} different {kind} fingerprints, so pods'
            f" that call themselves the same do not share prefixes. Population hit ratio: {seen('engine')},"
            f" {seen('usage')}."
        ),
        dashboard=dashboards.RELEASE,
        set_labels={"fingerprint": kind},
    )
