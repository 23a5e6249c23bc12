"""Reuse of a revision fell though nobody released: compared with its own day, not with other revisions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.pack import queries
from prefix_cache_exporter.pack.alerts import conditions, dashboards, text
from prefix_cache_exporter.pack.durations import Duration
from prefix_cache_exporter.pack.model import Alert
from prefix_cache_exporter.pack.names import RELEASE
from prefix_cache_exporter.pack.records import baseline, releases

if TYPE_CHECKING:
    from prefix_cache_exporter.measures import Ratio
    from prefix_cache_exporter.pack.names import Names

NAME = "PrefixCacheDroppedWithoutRelease"


def alerts(names: Names) -> tuple[Alert, ...]:
    """One rule per plane."""
    return tuple(_alert(names, plane) for plane in conditions.PLANES)


def rolling_out(names: Names, ratio: Ratio) -> str:
    """Some revision of the template is being rolled out, which moves pods and traffic of the others.

    A revision that never carried traffic above the floor moves nothing: a smoke test of every build hides no drop.
    """
    rollout = names.settings.release.rollout
    carrying = f"{releases.age(names)} and last_over_time({baseline.qualified(names, ratio)}[{rollout}])"
    youngest = queries.by("min", names.labels("template"), carrying)
    return f"({youngest} < {queries.number(rollout.seconds)})"


def _alert(names: Names, plane: str) -> Alert:
    settings, ratio = names.settings, conditions.population(plane)
    own = baseline.own_best(names, ratio)
    return Alert(
        name=NAME,
        expr=(
            f"{conditions.below(names, baseline.settled(names, ratio), settings.thresholds.dropped, own)}\n"
            f"and {conditions.warm_by_now(names)}\n"
            f"unless on ({', '.join(names.labels('template'))}) {rolling_out(names, ratio)}"
        ),
        labels=(*RELEASE, *settings.labels.extra),
        severity="warning",
        hold=Duration.parse("30m"),
        keep=Duration.parse("15m"),
        summary="Prompt-prefix reuse dropped although no release explains it.",
        description=(
            f"{text.REVISION} has a population hit ratio of {text.PERCENT_VALUE}"
            f" ({conditions.both_sides(names, ratio)}, {plane} plane);"
            f" its own best median within {settings.windows.day} was {text.value(own, text.PERCENT)}."
        ),
        dashboard=dashboards.OVERVIEW,
        set_labels={"plane": plane},
    )
