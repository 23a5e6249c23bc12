"""A release broke reuse: the one alert of this project that pages."""

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

NAME = "PrefixCacheCollapsedAfterRelease"


def alerts(names: Names) -> tuple[Alert, ...]:
    """One rule per plane."""
    return tuple(_alert(names, plane) for plane in conditions.PLANES)


def _alert(names: Names, plane: str) -> Alert:
    settings, ratio = names.settings, conditions.population(plane)
    expected = baseline.expected(names, ratio)
    # On the release's first day a loss counts even if the revision was warm for a while, say as a canary.
    day_over = f"({releases.age(names)} > {queries.number(settings.release.window.seconds)})"
    return Alert(
        name=NAME,
        expr=(
            f"{conditions.below(names, baseline.settled(names, ratio), settings.thresholds.collapsed, expected)}\n"
            f"and {conditions.warm_by_now(names)}\nand {conditions.recently_released(names)}\n"
            f"unless ({day_over} and {conditions.once_warm(names, ratio)})\n"
            f"unless {conditions.as_yesterday(names, ratio)}"
        ),
        labels=(*RELEASE, *settings.labels.extra),
        severity="critical",
        hold=Duration.parse("10m"),
        keep=Duration.parse("15m"),
        summary="Prompt-prefix reuse collapsed after a template release.",
        description=(
            f"{text.REVISION} has a population hit ratio of {text.PERCENT_VALUE}"
            f" ({conditions.both_sides(names, ratio)}, {plane} plane);"
            f" expected was {text.value(expected, text.PERCENT)}. Its first traffic was"
            f" {text.value(releases.age(names), text.DURATION)} ago, its cold window of"
            f" {text.value(releases.cold_window(names), text.DURATION)} is over."
        ),
        dashboard=dashboards.RELEASE,
        set_labels={"plane": plane},
    )
