"""Prompts are shorter than a KV block, and only whole blocks are cached: there is nothing to reuse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.measures import ENGINE
from prefix_cache_exporter.pack import queries
from prefix_cache_exporter.pack.alerts import conditions, dashboards, text
from prefix_cache_exporter.pack.durations import Duration
from prefix_cache_exporter.pack.model import Alert
from prefix_cache_exporter.pack.names import RELEASE
from prefix_cache_exporter.pack.records import baseline, pressure

if TYPE_CHECKING:
    from prefix_cache_exporter.pack.names import Names

NAME = "PrefixCacheDeadBelowBlockSize"


def alerts(names: Names) -> tuple[Alert, ...]:
    """Informative: nobody needs to get up for it."""
    settings = names.settings
    long = settings.windows.long
    finished = names.rate(ENGINE["finished_requests"], long)
    mean = queries.select(pressure.mean_prompt(names), baseline.ONE_REVISION)
    ratio = conditions.population("engine")
    return (
        Alert(
            name=NAME,
            expr=(
                f"({mean} < on ({', '.join(names.labels('model'))}) group_left () {pressure.block_size(names)})\n"
                f"and {conditions.enough_requests(names, finished)}"
            ),
            labels=(*RELEASE, *settings.labels.extra),
            severity="info",
            hold=Duration.parse("1h"),
            summary="Prompts are shorter than one KV block, so nothing can be cached.",
            description=(
                f'{text.REVISION} has a mean prompt of {{{{ $value | printf "%.1f" }}}} tokens over'
                f" {text.value(finished, text.TOKENS, long.seconds)} requests in {long}; the smallest KV block has"
                f" {text.value(pressure.block_size(names), text.TOKENS)} tokens, and only whole blocks are cached."
                f" Population hit ratio over {long}: {text.value(names.ratio(ratio, long), text.PERCENT)}"
                f" ({text.value(names.rate(ENGINE['cached_prompt_tokens'], long), text.TOKENS, long.seconds)} cached of"
                f" {text.value(names.rate(ENGINE['prompt_tokens'], long), text.TOKENS, long.seconds)} prompt tokens)."
            ),
            dashboard=dashboards.ENGINE,
        ),
    )
