"""What is wrong with a pack file beyond its schema: values that together, or in Prometheus, come to nothing.

Most of these would not fail there. They would silence alerts: a threshold that is no number compares with nothing, a
median that needs more time than its window has is never recorded.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from prefix_cache_exporter.documents import DocumentError, place, shown
from prefix_cache_exporter.measures import FAMILIES

from . import queries
from .durations import Duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .settings import Settings

_LONGEST = Duration.parse("3650d")
WRITTEN = frozenset({"le"}) | {
    label for family in FAMILIES.values() if "source" in family.labels for label in family.labels
}
"""Labels that the exporter itself writes, and that rules group by."""
ALERTING = frozenset({"alertname", "severity", "plane", "reason", "fingerprint", "budget", "job"})
"""Labels by which alerts of one name are told apart, routed and inhibited."""


def no_numbers(data: Any, file: str, path: tuple[str | int, ...] = ()) -> Iterator[DocumentError]:
    """`.nan` and `.inf`, which YAML takes for numbers and every comparison for false."""
    if isinstance(data, float) and not math.isfinite(data):
        yield DocumentError(file, place(path), shown(data), "a finite number")
    elif isinstance(data, dict | list):
        for key, inner in data.items() if isinstance(data, dict) else enumerate(data):
            yield from no_numbers(inner, file, (*path, key))


def contradictions(settings: Settings, file: str) -> Iterator[DocumentError]:
    """Everything else that a schema cannot say."""
    for found in (_order(settings, file), _labels(settings, file), _expressions(settings, file)):
        yield from found


def _order(settings: Settings, file: str) -> Iterator[DocumentError]:
    windows, release = settings.windows, settings.release
    spans = {
        "windows.short": windows.short,
        "windows.long": windows.long,
        "windows.day": windows.day,
        "release.memory": release.memory,
        "release.cold_window": release.cold_window,
    }
    broken: dict[str, list[tuple[Duration, str]]] = {}
    for path, least, name in (
        ("windows.short", settings.interval, "interval"),
        ("windows.long", windows.short, "windows.short"),
        ("windows.day", windows.long, "windows.long"),
        ("release.memory", windows.day, "windows.day"),
        ("release.memory", release.cold_window, "release.cold_window"),
    ):
        if spans[path] <= least:
            broken.setdefault(path, []).append((least, f"more than {name} ({least})"))
    for path, least, name in (
        ("release.cold_window", settings.interval, "interval"),
        ("release.memory", release.window, "release.window"),
        ("release.memory", release.rollout, "release.rollout"),
        ("windows.day", settings.floors.baseline_time, "floors.baseline_time"),
    ):
        if spans[path] < least:
            broken.setdefault(path, []).append((least, f"at least {name} ({least})"))
    for path, bounds in broken.items():  # who keeps the farthest bound keeps them all: of equal ones, "more than"
        yield DocumentError(file, path, shown(str(spans[path])), max(bounds)[1])
    for path, value in _capped_spans(settings):
        if value > _LONGEST:
            yield DocumentError(file, path, shown(str(value)), f"at most {_LONGEST}")
    warm, collapsed = settings.thresholds.warm, settings.thresholds.collapsed
    if warm < collapsed:
        expected = f"at least thresholds.collapsed ({queries.number(collapsed)})"
        yield DocumentError(file, "thresholds.warm", shown(warm), expected)


def _capped_spans(settings: Settings) -> Iterator[tuple[str, Duration]]:
    yield "release.memory", settings.release.memory
    yield "thresholds.exporters_gone", settings.thresholds.exporters_gone
    for name, change in settings.alerts.items():
        for key, value in (("for", change.for_), ("keep_firing_for", change.keep_firing_for)):
            if value is not None:
                yield f"alerts.{name}.{key}", value


def _labels(settings: Settings, file: str) -> Iterator[DocumentError]:
    for number, label in enumerate(settings.labels.extra):
        if label in WRITTEN | ALERTING - {"job"} or label.startswith("__"):
            expected = "a label that targets bring along, not one of the exporter's or of an alert's own"
            yield DocumentError(file, f"labels.extra[{number}]", shown(label), expected)
    for label in settings.labels.alerts:
        if label in WRITTEN | ALERTING | set(settings.labels.extra) or label.startswith("__"):
            yield DocumentError(file, f"labels.alerts.{label}", shown(label), "a label that no alert has of its own")


def _expressions(settings: Settings, file: str) -> Iterator[DocumentError]:
    try:
        import promql_parser  # noqa: PLC0415  # comes with [pack], without which nothing is generated
    except ModuleNotFoundError:
        return
    for path, value, matchers in (
        ("selector", settings.selector, settings.selector),
        ("trust.weak_hash", settings.trust.weak_hash, f"hash_algorithm=~{queries.quoted(settings.trust.weak_hash)}"),
    ):
        try:
            promql_parser.parse(queries.select("up", matchers))
        except ValueError as error:
            yield DocumentError(file, path, shown(value), f"what Prometheus can read ({error})")
