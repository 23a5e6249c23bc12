"""Too much traffic says nothing about its cached tokens for the ratios to stand for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.measures import ENGINE, USAGE
from prefix_cache_exporter.pack import queries
from prefix_cache_exporter.pack.alerts import conditions, dashboards, text
from prefix_cache_exporter.pack.durations import Duration
from prefix_cache_exporter.pack.model import Alert
from prefix_cache_exporter.pack.names import RELEASE, ratio_named
from prefix_cache_exporter.pack.records import baseline

if TYPE_CHECKING:
    from prefix_cache_exporter.pack.model import Series
    from prefix_cache_exporter.pack.names import Names

NAME = "PrefixCacheCoverageLow"


def alerts(names: Names) -> tuple[Alert, ...]:
    """Of requests in the usage plane, of prompt tokens in the engine plane."""
    floors, long = names.settings.floors, names.settings.windows.long
    known = {"engine": ENGINE["prompt_tokens"], "usage": USAGE["reported_requests"]}
    unknown = {"engine": ENGINE["excluded_prompt_tokens"], "usage": USAGE["unreported_requests"]}
    return tuple(
        _alert(names, plane, names.rate(known[plane], long), names.rate(unknown[plane], long), floor)
        for plane, floor in (("engine", floors.prompt_tokens), ("usage", floors.requests))
    )


def _alert(names: Names, plane: str, known: Series, unknown: Series, floor: float) -> Alert:
    settings, long = names.settings, names.settings.windows.long
    coverage = ratio_named({"engine": "engine_coverage", "usage": "usage_request_coverage"}[plane])
    noun = {"engine": "prompt tokens", "usage": "requests"}[plane]
    now = queries.select(names.ratio(coverage, long), baseline.ONE_REVISION)
    population = names.ratio(conditions.population(plane), long)
    everything = f"({queries.known_sum(known.name, unknown.name)}) * {queries.number(long.seconds)}"
    return Alert(
        name=NAME,
        expr=(
            f"({now} < {queries.number(settings.thresholds.coverage)})\nand ({everything} >= {queries.number(floor)})"
        ),
        labels=(*RELEASE, *settings.labels.extra),
        severity="warning",
        hold=Duration.parse("30m"),
        keep=Duration.parse("15m"),
        summary="Too little of the traffic reports cached tokens for its ratios to stand for it.",
        description=(
            f"{text.REVISION}: {text.PERCENT_VALUE} of {noun} in {long} are known to the {plane} plane"
            f" ({text.value(known, text.TOKENS, long.seconds)} known,"
            f" {text.value(unknown, text.TOKENS, long.seconds)} not); at least"
            f" {queries.number(settings.thresholds.coverage * 100)}% should be. The population hit ratio of"
            f" {text.value(population, text.PERCENT)} speaks of the known part only."
        ),
        dashboard=dashboards.USAGE if plane == "usage" else dashboards.ENGINE,
        set_labels={"plane": plane},
    )
