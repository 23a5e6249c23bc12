"""Conditions that several alerts share: which revision may be judged, and against what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.pack import queries
from prefix_cache_exporter.pack.alerts import text
from prefix_cache_exporter.pack.names import ratio_named
from prefix_cache_exporter.pack.records import baseline, releases

if TYPE_CHECKING:
    from prefix_cache_exporter.measures import Ratio
    from prefix_cache_exporter.pack.model import Series
    from prefix_cache_exporter.pack.names import Names

PLANES = ("engine", "usage")


def population(plane: str) -> Ratio:
    """The population hit ratio of a plane."""
    return ratio_named(baseline.POPULATION[plane])


def below(names: Names, now: Series, share: float, reference: Series) -> str:
    """A ratio below a share of its reference, where the reference is high enough to be one."""
    floor = queries.number(names.settings.floors.baseline_ratio)
    return f"({now} < {queries.number(share)} * ({reference} >= {floor}))"


def warm_by_now(names: Names) -> str:
    """The cold window of the revision is over."""
    return f"({releases.past_cold(names)} > 0)"


def recently_released(names: Names) -> str:
    """The revision had its first traffic so lately that its baseline at release is remembered."""
    return f"({releases.age(names)} < {queries.number(names.settings.release.memory.seconds)})"


def once_warm(names: Names, ratio: Ratio) -> str:
    """The revision itself has had a median that counts as warm."""
    share = queries.number(names.settings.thresholds.warm)
    return f"({baseline.own_best(names, ratio)} >= {share} * {baseline.expected(names, ratio)})"


def as_yesterday(names: Names, ratio: Ratio) -> str:
    """The template reused no more around this time of yesterday: the hour explains it, not the release."""
    usual = f"{queries.number(names.settings.thresholds.warm)} * {baseline.day_ago(names, ratio)}"
    return f"({baseline.settled(names, ratio)} >= on ({', '.join(names.labels('template'))}) group_left () ({usual}))"


def enough_requests(names: Names, rate: Series) -> str:
    """A rate of requests comes to enough of them in the long window to be judged."""
    settings = names.settings
    floor = queries.number(settings.floors.requests)
    return f"({rate} * {queries.number(settings.windows.long.seconds)} >= {floor})"


def both_sides(names: Names, ratio: Ratio, what: str = "prompt tokens") -> str:
    """Numerator and denominator of a judged ratio in the short window, in words."""
    short = names.settings.windows.short
    sides = [
        text.value(baseline.tokens(names, ratio, side), text.TOKENS, short.seconds)
        for side in ("numerator", "denominator")
    ]
    return f"{sides[0]} cached of {sides[1]} {what} in {short}"
