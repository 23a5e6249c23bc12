"""Signs that KV blocks are evicted before they are reused: full engines, preemptions, short idle times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.measures import ENGINE
from prefix_cache_exporter.pack import queries
from prefix_cache_exporter.pack.model import Record

from . import rates

if TYPE_CHECKING:
    from prefix_cache_exporter.pack.durations import Duration
    from prefix_cache_exporter.pack.model import Series
    from prefix_cache_exporter.pack.names import Names

_IDLE = ENGINE["block_idle_before_evict_seconds"]
_SUM, _COUNT = "_sum", "_count"


def full_share(names: Names) -> Series:
    """Share of engines whose KV usage is at or above the threshold."""
    return names.series("model", "prefix_cache_engine_full_engines_per_engines", "ratio", "ratio")


def preempted(names: Names) -> Series:
    """Preemptions per finished request."""
    return names.series(
        "model",
        "prefix_cache_engine_preemptions_per_finished_requests",
        f"ratio_rate{names.settings.windows.short}",
        "ratio",
    )


def idle(names: Names, window: Duration) -> Series:
    """Mean time in seconds that an evicted block had lain unused."""
    return names.series("model", f"{_IDLE.name}_sum_per_count", f"ratio_rate{window}", "ratio")


def block_size(names: Names) -> Series:
    """The smallest KV block among the engines of a model, in tokens."""
    return names.series("model", ENGINE["block_size_tokens"].name, "min")


def mean_prompt(names: Names) -> Series:
    """Prompt tokens per finished request over the long window, excluded tokens included."""
    return names.series(
        "template_revision",
        "prefix_cache_engine_prompt_tokens_plus_excluded_prompt_tokens_per_finished_requests",
        f"ratio_rate{names.settings.windows.long}",
        "ratio",
    )


def records(names: Names) -> tuple[Record, ...]:
    """Rules of the engine plane beyond the catalogue's ratios."""
    settings, labels = names.settings, names.labels("model")
    short, long, day = settings.windows.short, settings.windows.long, settings.windows.day
    usage = queries.select(ENGINE["kv_usage_ratio"].series_name, settings.selector)
    parts = {part: names.rate(_IDLE, short, level="model", part=part) for part in (_SUM, _COUNT)}
    sums = [
        Record(series, queries.total(labels, queries.rate(_IDLE, short, settings.selector, part=part)))
        for part, series in parts.items()
    ]
    daily = [rates.mean_over(names, series, day) for series in parts.values()]

    def summed(id_: str, window: Duration) -> str:
        return queries.total(labels, names.rate(ENGINE[id_], window).name)

    prompts = queries.known_sum(
        names.rate(ENGINE["prompt_tokens"], long).name, names.rate(ENGINE["excluded_prompt_tokens"], long).name
    )
    return (
        *sums,
        *daily,
        Record(idle(names, short), queries.ratio(*(series.name for series in parts.values()))),
        Record(idle(names, day), queries.ratio(*(rule.series.name for rule in daily))),
        Record(
            full_share(names),
            queries.ratio(
                queries.by("count", labels, f"{usage} >= {queries.number(settings.thresholds.kv_usage)}"),
                queries.by("count", labels, usage),
            ),
        ),
        Record(preempted(names), queries.ratio(summed("preemptions", short), summed("finished_requests", short))),
        Record(
            block_size(names),
            queries.by("min", labels, queries.select(ENGINE["block_size_tokens"].series_name, settings.selector)),
        ),
        Record(mean_prompt(names), queries.ratio(prompts, names.rate(ENGINE["finished_requests"], long).name)),
    )
