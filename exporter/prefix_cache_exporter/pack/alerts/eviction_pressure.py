"""Reuse falls while the engine has to give up blocks: too little room, not a broken prefix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.pack import queries
from prefix_cache_exporter.pack.alerts import conditions, dashboards, text
from prefix_cache_exporter.pack.durations import Duration
from prefix_cache_exporter.pack.model import Alert
from prefix_cache_exporter.pack.names import RELEASE
from prefix_cache_exporter.pack.records import baseline, pressure

if TYPE_CHECKING:
    from prefix_cache_exporter.pack.names import Names

NAME = "PrefixCacheEvictionPressure"


def signs(names: Names) -> str:
    """Any sign of pressure on a model's engines."""
    limits, windows = names.settings.thresholds, names.settings.windows
    return queries.either(
        f"{pressure.full_share(names)} >= {queries.number(limits.engines_full)}",
        f"{pressure.preempted(names)} >= {queries.number(limits.preempted)}",
        f"{pressure.idle(names, windows.short)} < {queries.number(limits.idle_shrunk)}"
        f" * {pressure.idle(names, windows.day)}",
    )


def alerts(names: Names) -> tuple[Alert, ...]:
    """Engine plane only: no provider tells of its evictions."""
    settings, ratio = names.settings, conditions.population("engine")
    own, short = baseline.own_best(names, ratio), settings.windows.short
    return (
        Alert(
            name=NAME,
            expr=(
                f"{conditions.below(names, baseline.settled(names, ratio), settings.thresholds.warm, own)}\n"
                f"and {conditions.warm_by_now(names)}\n"
                f"and on ({', '.join(names.labels('model'))}) (\n{signs(names)}\n)"
            ),
            labels=(*RELEASE, *settings.labels.extra),
            severity="warning",
            hold=Duration.parse("15m"),
            keep=Duration.parse("15m"),
            summary="Cached prefixes are evicted before they are reused.",
            description=(
                f"{text.REVISION} has a population hit ratio of {text.PERCENT_VALUE}"
                f" ({conditions.both_sides(names, ratio)}); its own best median within {settings.windows.day} was"
                f" {text.value(own, text.PERCENT)}. Engines with KV usage of at least"
                f" {queries.number(settings.thresholds.kv_usage * 100)}%:"
                f" {text.value(pressure.full_share(names), text.PERCENT)}; preemptions per finished request:"
                f" {text.value(pressure.preempted(names), text.PERCENT)}; evicted blocks had lain unused for"
                f" {text.value(pressure.idle(names, short), text.DURATION)}, over {settings.windows.day}"
                f" {text.value(pressure.idle(names, settings.windows.day), text.DURATION)}."
            ),
            dashboard=dashboards.ENGINE,
        ),
    )
