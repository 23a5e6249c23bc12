"""A release did not warm up in time: less than a collapse, more than a cold window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.pack.alerts import conditions, dashboards, text
from prefix_cache_exporter.pack.durations import Duration
from prefix_cache_exporter.pack.model import Alert
from prefix_cache_exporter.pack.names import RELEASE
from prefix_cache_exporter.pack.records import baseline, releases

if TYPE_CHECKING:
    from prefix_cache_exporter.pack.names import Names

NAME = "PrefixCacheColdWindowExceeded"


def alerts(names: Names) -> tuple[Alert, ...]:
    """One rule per plane."""
    return tuple(_alert(names, plane) for plane in conditions.PLANES)


def _alert(names: Names, plane: str) -> Alert:
    settings, ratio = names.settings, conditions.population(plane)
    expected = baseline.expected(names, ratio)
    return Alert(
        name=NAME,
        expr=(
            f"{conditions.below(names, baseline.settled(names, ratio), settings.thresholds.warm, expected)}\n"
            f"and {conditions.warm_by_now(names)}\nand {conditions.recently_released(names)}\n"
            f"unless {conditions.once_warm(names, ratio)}\nunless {conditions.as_yesterday(names, ratio)}"
        ),
        labels=(*RELEASE, *settings.labels.extra),
        severity="warning",
        hold=Duration.parse("15m"),
        keep=Duration.parse("15m"),
        summary="A template release is still cold after its cold window.",
        description=(
            f"{text.REVISION} has a population hit ratio of {text.PERCENT_VALUE}"
            f" ({conditions.both_sides(names, ratio)}, {plane} plane)"
            f" {text.value(releases.past_cold(names), text.DURATION)} after the end of its cold window;"
            f" expected was {text.value(expected, text.PERCENT)}."
        ),
        dashboard=dashboards.RELEASE,
        set_labels={"plane": plane},
    )
