"""More requests of a prompt-length band are hits than a day ago, and they start no faster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.pack import queries
from prefix_cache_exporter.pack.alerts import dashboards, text
from prefix_cache_exporter.pack.durations import Duration
from prefix_cache_exporter.pack.model import Alert
from prefix_cache_exporter.pack.records import baseline, latency

if TYPE_CHECKING:
    from prefix_cache_exporter.pack.names import Names

NAME = "PrefixCacheNoLatencyGain"


def alerts(names: Names) -> tuple[Alert, ...]:
    """Like with like: the same band, the same hour of yesterday."""
    settings = names.settings
    long, day = settings.windows.long, settings.windows.day
    share, mean, count = latency.hit_share(names), latency.mean(names), latency.count(names)
    kept = queries.number(1 - settings.thresholds.latency_gain)
    floor = queries.number(settings.floors.band_requests)
    one = queries.select(share, baseline.ONE_TEMPLATE)
    enough = f"{count} * {queries.number(long.seconds)} >= {floor}"
    enough_before = f"{count} offset {day} * {queries.number(long.seconds)} >= {floor}"
    return (
        Alert(
            name=NAME,
            expr=(
                f"({one} - ({share} offset {day}) > {queries.number(settings.thresholds.hits_up)})\n"
                f"and ({mean} >= {kept} * ({mean} offset {day}))\nand ({enough})\nand ({enough_before})"
            ),
            labels=names.labels("prompt_band"),
            severity="info",
            hold=Duration.parse("1h"),
            summary="More cache hits did not make requests of the same length start sooner.",
            description=(
                f"{text.TEMPLATE[0].upper()}{text.TEMPLATE[1:]}, prompts of band"
                f" {{{{ $labels.prompt_band }}}}: the request hit ratio rose by {text.PERCENT_VALUE} to"
                f" {text.value(share, text.PERCENT)}"
                f" ({text.value(latency.hits(names), text.TOKENS, long.seconds)} hits of"
                f" {text.value(count, text.TOKENS, long.seconds)} requests in {long}), while the mean time to the first"
                f" token is {text.value(mean, text.SECONDS)} s; a baseline of {day} ago:"
                f" {text.value(mean, text.SECONDS, offset=day)} s. Queueing or decoding may decide now."
            ),
            dashboard=dashboards.RELEASE,
        ),
    )
