"""What the fleet knows of releases: the first traffic of a revision, its age, its cold window.

An exporter's own first-traffic gauge starts anew with its pod. The minimum over the fleet, remembered over a week, does
not: a pod added later, a rolling restart or a roll-back makes no revision new. A revision that was present a memory ago
has at least that age, because a time of first traffic never lies in the future of the sample that tells it. One that
comes back after longer than that is a release like any other, although its exporter may remember its first days.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.measures import EXPORTER
from prefix_cache_exporter.pack import queries
from prefix_cache_exporter.pack.model import Record

if TYPE_CHECKING:
    from prefix_cache_exporter.measures import Family
    from prefix_cache_exporter.pack.durations import Duration
    from prefix_cache_exporter.pack.model import Series
    from prefix_cache_exporter.pack.names import Names

_FIRST = EXPORTER["release_first_traffic_timestamp_seconds"]
_COLD = EXPORTER["release_cold_window_seconds"]
_INFO = EXPORTER["release_info"]
FINGERPRINTS = ("release_fingerprint", "leading_fingerprint")


def first_traffic(names: Names) -> Series:
    """When the first traffic of a revision was seen anywhere, in seconds since 1970."""
    return names.series("template_revision", _FIRST.name, f"min{names.settings.release.memory}")


def returned(names: Names) -> Series:
    """When a revision appeared that had not been seen for as long as the memory goes, though its template had."""
    return names.series("template_revision", "prefix_cache_release_return_timestamp_seconds", "last")


def age(names: Names) -> Series:
    """Seconds since the first traffic of a revision anywhere."""
    return names.series("template_revision", "prefix_cache_release_age_seconds", "max")


def cold_window(names: Names) -> Series:
    """Seconds for which a revision may be cold: what its release says, else the pack file's default."""
    return names.series("template_revision", _COLD.name, "max")


def past_cold(names: Names) -> Series:
    """Seconds since the end of the cold window; below 0 while it lasts."""
    return names.series("template_revision", "prefix_cache_release_past_cold_window_seconds", "diff")


def fingerprints(names: Names, label: str) -> Series:
    """How many different fingerprints a revision is served with."""
    return names.series("template_revision", f"prefix_cache_{label}s", "count")


def records(names: Names) -> tuple[Record, ...]:
    """Rules of the release group."""
    settings, labels = names.settings, names.labels("template_revision")

    def over_pods(operation: str, family: Family) -> str:
        return queries.by(operation, labels, queries.select(family.series_name, settings.selector))

    def seen(before: Duration) -> str:
        return f"last_over_time({now}[{memory}] offset {before})"

    now = names.series("template_revision", _FIRST.name, "min")
    memory = settings.release.memory
    earliest, last_return = f"min_over_time({now}[{memory}])", f"last_over_time({returned(names)}[{memory}])"
    default = queries.number(settings.release.cold_window.seconds)
    rules = [
        Record(now, over_pods("min", _FIRST)),
        Record(
            returned(names),
            f"({now} * 0 + time()) unless {seen(settings.interval)}\n"
            f"and on ({', '.join(names.labels('template'))}) {seen(settings.windows.day)}",
        ),
        Record(
            first_traffic(names),
            queries.either(f"{last_return} > {earliest} + {queries.number(memory.seconds)}", earliest),
        ),
        Record(age(names), f"time() - {first_traffic(names)}"),
        Record(cold_window(names), queries.either(over_pods("max", _COLD), f"{age(names)} * 0 + {default}")),
        Record(past_cold(names), f"{age(names)} - {cold_window(names)}"),
    ]
    for label in FINGERPRINTS:
        info = queries.select(_INFO.series_name, f'{label}!=""', settings.selector)
        each = queries.by("count", (*labels, label), info)
        rules.append(Record(fingerprints(names, label), queries.by("count", labels, each)))
    return tuple(rules)
