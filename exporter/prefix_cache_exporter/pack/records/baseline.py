"""What reuse should be: medians of revisions, the best of them per template, and what is expected of a release.

A revision is compared with the best median that its template had when the revision was born, never with one that came
later: a roll-back to an older, lesser revision is no regression. A median is remembered as it was while the revision
last carried traffic; so nights without traffic do not erase it, and the tail of a draining revision does not spoil it.
What a warm revision came to at the same time of yesterday is remembered, too: a release does not answer for the night.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.labels import MIXED, OTHER
from prefix_cache_exporter.measures import EXPORTER
from prefix_cache_exporter.pack import queries
from prefix_cache_exporter.pack.durations import Duration
from prefix_cache_exporter.pack.model import Record
from prefix_cache_exporter.pack.names import families, ratio_named

from . import rates, releases

if TYPE_CHECKING:
    from prefix_cache_exporter.measures import Ratio
    from prefix_cache_exporter.pack.model import Series
    from prefix_cache_exporter.pack.names import Names

ONE_TEMPLATE = f'model!="{OTHER}",template!="{OTHER}"'
"""Leaves out what is no single template of a single model: what exceeded a label's bound is a mix of any of them."""
ONE_REVISION = f'{ONE_TEMPLATE},template_revision!~"{MIXED}|{OTHER}"'
"""Leaves out what is no single revision: increases that straddle a release, and what exceeded a label's bound."""
POPULATION = {"engine": "engine_population_hit", "usage": "usage_population_hit"}
JUDGED = {"engine": ("engine_population_hit",), "usage": ("usage_population_hit", "usage_eligible_prefix")}
_PREDICTED = EXPORTER["release_predicted_population_hit_ratio"]


def qualified(names: Names, ratio: Ratio) -> Series:
    """The short-window ratio of a single revision whose traffic is above the floor."""
    return names.ratio(ratio, names.settings.windows.short, suffix="_qualified")


def settled(names: Names, ratio: Ratio) -> Series:
    """The qualified ratio of a revision that has carried this much traffic for a cold window already."""
    return names.ratio(ratio, names.settings.windows.short, suffix="_settled")


def median(names: Names, ratio: Ratio) -> Series:
    """Median of the qualified ratio over the day, while the revision carries traffic."""
    return names.of_ratio(ratio, f"ratio_median{names.settings.windows.day}")


def own_best(names: Names, ratio: Ratio) -> Series:
    """The best median that the revision itself had within the day."""
    return names.of_ratio(ratio, f"ratio_median{names.settings.windows.day}_best")


def best(names: Names, ratio: Ratio) -> Series:
    """Baseline of a template: the best remembered median among its revisions."""
    return names.of_ratio(ratio, "ratio_baseline", level="template")


def at_release(names: Names, ratio: Ratio) -> Series:
    """The template's baseline as it was in the cold window of a revision."""
    return names.of_ratio(ratio, "ratio_baseline_at_release")


def proven(names: Names, ratio: Ratio) -> Series:
    """The best that a template's revisions reach now, of those that were warm within the day."""
    return names.ratio(ratio, names.settings.windows.short, level="template", suffix="_proven")


def day_ago(names: Names, ratio: Ratio) -> Series:
    """The least that this came to around the same time of yesterday: what the hour of the day explains."""
    return names.of_ratio(ratio, "ratio_day_ago", level="template")


def expected(names: Names, ratio: Ratio) -> Series:
    """What a revision should reach once warm: what its release predicts, else the template's baseline at its birth."""
    return names.of_ratio(ratio, "ratio_expected")


def tokens(names: Names, ratio: Ratio, side: str) -> Series:
    """Recorded short-window rate of a judged ratio's numerator or denominator."""
    (id_,) = getattr(ratio, side)
    return names.rate(families(ratio.plane)[id_], names.settings.windows.short)


def records(names: Names, plane: str) -> tuple[Record, ...]:
    """Rules of one plane's judged ratios."""
    rules: list[Record] = []
    for id_ in JUDGED[plane]:
        ratio = ratio_named(id_)
        rules += _judged(names, ratio)
        if id_ in POPULATION.values():
            rules += _expected(names, ratio)
    return tuple(rules)


def _judged(names: Names, ratio: Ratio) -> list[Record]:
    settings = names.settings
    short, cold, floors = settings.windows.short, settings.release.cold_window, settings.floors
    floor = floors.eligible_tokens if ratio.id == "usage_eligible_prefix" else floors.prompt_tokens
    traffic, now = tokens(names, ratio, "denominator"), qualified(names, ratio)
    day = rates.over(names, settings.windows.day)
    return [
        Record(
            now,
            f"{queries.select(names.ratio(ratio, short), ONE_REVISION)}\n"
            f"and ({traffic} * {queries.number(short.seconds)} >= {queries.number(floor)})",
        ),
        Record(
            settled(names, ratio),
            f"{now}\nand ({traffic} <= {queries.number(settings.release.ramp)}"
            f" * max_over_time({traffic}[{cold}] offset {cold}))",
        ),
        Record(
            median(names, ratio),
            f"quantile_over_time(0.5, {now}[{day}])\nand {now}\n"
            f"and (count_over_time({now}[{day}]) >= {floors.baseline_time.per(settings.interval)})",
        ),
        Record(own_best(names, ratio), f"max_over_time({median(names, ratio)}[{settings.windows.day}])"),
    ]


def _expected(names: Names, ratio: Ratio) -> list[Record]:
    settings = names.settings
    memory, release, template = settings.release.memory, names.labels("template_revision"), names.labels("template")
    joined = f"on ({', '.join(template)}) group_left () {best(names, ratio)}"
    remembered = f"last_over_time({at_release(names, ratio)}[{memory}])"
    # Half a window to either side of this time yesterday.
    ago = Duration(settings.windows.day.milliseconds - settings.windows.long.milliseconds // 2)
    # NaN would compare as false with every ratio: what is no number is no prediction, and the baseline stands.
    number = f"{queries.select(_PREDICTED.series_name, settings.selector)} >= 0"
    predicted = queries.by("max", release, number)
    return [
        Record(best(names, ratio), queries.by("max", template, f"last_over_time({median(names, ratio)}[{memory}])")),
        Record(
            at_release(names, ratio),
            queries.either(
                f"({releases.past_cold(names)} < 0) * 0 + {joined}",
                # Born while nobody looked: the first baseline that is known stands, whatever comes later.
                f"(({releases.age(names)} < {queries.number(memory.seconds)}) * 0 + {joined}) unless {remembered}",
            ),
        ),
        Record(expected(names, ratio), queries.either(predicted, remembered)),
        Record(proven(names, ratio), queries.by("max", template, _warm(names, ratio))),
        Record(day_ago(names, ratio), f"min_over_time({proven(names, ratio)}[{settings.windows.long}] offset {ago})"),
    ]


def _warm(names: Names, ratio: Ratio) -> str:
    """The qualified ratio of revisions that are known to have been warm: a broken release is nobody's yesterday."""
    own, share = own_best(names, ratio), queries.number(names.settings.thresholds.warm)
    return f"{qualified(names, ratio)} and {own} unless ({own} < {share} * {expected(names, ratio)})"
