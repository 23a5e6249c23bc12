"""Time to the first token by prompt-length band, and how many of its requests were hits: latency of like with like."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.measures import USAGE
from prefix_cache_exporter.pack import queries
from prefix_cache_exporter.pack.model import Record

from . import rates

if TYPE_CHECKING:
    from prefix_cache_exporter.pack.model import Series
    from prefix_cache_exporter.pack.names import Names

_TTFT = USAGE["time_to_first_token_seconds"]
_KEPT = ("prompt_band", "cache_state")
HIT = 'cache_state=~"hit|partial"'
"""Any cached token makes a hit, as in the request hit ratio."""
KNOWN = 'cache_state=~"hit|partial|miss"'


def seconds(names: Names) -> Series:
    """Seconds to the first token, per second, of requests whose cache state is known."""
    return names.rate(_TTFT, names.settings.windows.long, level="prompt_band", part="_sum", kept=())


def count(names: Names) -> Series:
    """Requests per second whose time to the first token and cache state are known."""
    return names.rate(_TTFT, names.settings.windows.long, level="prompt_band", part="_count", kept=())


def hits(names: Names) -> Series:
    """Those of them that were hits."""
    return names.series("prompt_band", f"{_TTFT.name}_hit_count", f"rate{names.settings.windows.long}", "rate")


def mean(names: Names) -> Series:
    """Mean time to the first token in a band, in seconds."""
    return names.series(
        "prompt_band", f"{_TTFT.name}_sum_per_count", f"ratio_rate{names.settings.windows.long}", "ratio"
    )


def hit_share(names: Names) -> Series:
    """Share of a band's requests that were hits."""
    return names.series(
        "prompt_band", f"{_TTFT.name}_hit_count_per_count", f"ratio_rate{names.settings.windows.long}", "ratio"
    )


def records(names: Names) -> tuple[Record, ...]:
    """Rules of the latency group: by revision, band and cache state, then by template and band."""
    settings, rules = names.settings, list[Record]()
    long = settings.windows.long
    for part in ("_sum", "_count"):
        fine = names.rate(_TTFT, settings.windows.short, part=part, kept=_KEPT)
        summed = queries.total(fine.labels, queries.rate(_TTFT, settings.windows.short, settings.selector, part=part))
        rules += [Record(fine, summed), rates.mean_over(names, fine, long)]
    sums, counts = (names.rate(_TTFT, long, part=part, kept=_KEPT) for part in ("_sum", "_count"))
    labels = names.labels("prompt_band")
    return (
        *rules,
        Record(seconds(names), queries.total(labels, queries.select(sums, KNOWN))),
        Record(count(names), queries.total(labels, queries.select(counts, KNOWN))),
        Record(
            hits(names),
            queries.either(queries.total(labels, queries.select(counts, HIT)), f"{count(names)} * 0"),
        ),
        Record(mean(names), queries.ratio(seconds(names).name, count(names).name)),
        Record(hit_share(names), queries.ratio(hits(names).name, count(names).name)),
    )
