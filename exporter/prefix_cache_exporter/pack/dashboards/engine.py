"""Engine: what does the scheduler see, and can its numbers be trusted?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.measures import ENGINE
from prefix_cache_exporter.pack import queries
from prefix_cache_exporter.pack.alerts import dashboards as uids
from prefix_cache_exporter.pack.records import exporter, pressure

from . import panels
from .board import Question, board
from .layout import Cell, Section
from .panels import BAD, GOOD, WARN, Column, Line
from .reading import Reader, ratio_of, summed
from .shapes import query_override
from .variables import release_variables
from .wording import caveat_words, state_words

if TYPE_CHECKING:
    from prefix_cache_exporter.pack.names import Names

    from .shapes import Visual

QUESTION = Question(uids.ENGINE, "Engine", "What does the scheduler see, and can its numbers be trusted?")
_BY = ("model", "source")
_NAMED = "{{model}} ({{source}})"
_QUANTILES = (
    ("request_seconds", "Latency of whole requests", "requests"),
    ("inter_token_seconds", "Latency between tokens", "tokens"),
)


def make(names: Names) -> str:
    """The dashboard."""
    reader = Reader(names)
    sections = (
        Section("Can the numbers be trusted?", _trust(reader)),
        Section("Lookups and tiers", _lookups(reader)),
        Section("Occupancy, queue and preemptions", _occupancy(reader)),
        Section("Evictions (with --kv-cache-metrics)", _evictions(reader)),
        Section("Prefill and latency", _latency(reader)),
    )
    return board(names, QUESTION, release_variables(names, ENGINE["prompt_tokens"]), sections)


def _trust(reader: Reader) -> tuple[Cell, ...]:
    info, caveat, withheld = (ENGINE[id_] for id_ in ("info", "caveat", "withheld"))
    shown = ("source", "model", "engine_version", "metric_map", "prefix_caching", "hash_algorithm")
    engines = (
        Column("Source", label="source"),
        Column("Model", label="model"),
        Column("vLLM", label="engine_version", width=90),
        Column("Metric map", label="metric_map", width=120),
        Column("Prefix caching", label="prefix_caching", width=120),
        Column("Hash", label="hash_algorithm", width=110),
        Column("Engines", f"count by ({', '.join(shown)}) ({reader.raw(info)})", width=80),
    )
    states = (
        Column("Source", label="source", width=140),
        Column("Whether page and map agree", label="state", mappings=(panels.value_map(state_words()),), wrapped=True),
        Column(
            "Engines", f"{summed(('source', 'state'), reader.recorded(exporter.map_state(reader.names)))} > 0", width=80
        ),
    )
    caveats = (
        Column("Source", label="source", width=140),
        Column(
            "What this version counts differently",
            label="caveat",
            mappings=(panels.value_map(caveat_words()),),
            wrapped=True,
        ),
        Column("Pods", f"sum by (source, caveat) ({reader.raw(caveat)})", width=70),
    )
    missing = (
        Column("Source", label="source", width=140),
        Column("Measure", label="measure"),
        Column("Why", label="reason", width=230),
        Column("Pods", f"count by (source, measure, reason) ({reader.raw(withheld)})", width=70),
    )
    judgement = ((None, BAD), (0.5, WARN), (0.9, GOOD))
    coverage = panels.ratio_tile(ratio_of("engine_coverage"), reader.sides("engine_coverage"), judgement)
    about_states = "Only a verified map yields numbers without a question mark."
    about_caveats = "What to keep in mind beside these numbers. Empty is good."
    about_missing = "Numbers that this page does not give, rather than giving 0. Empty is good."
    return (
        Cell(panels.table("Engines and their metric maps", engines, "Which vLLM is read through which map."), 16, 5),
        Cell(coverage, 8, 5),
        Cell(panels.table("State of the maps", states, about_states), 12, 5),
        Cell(panels.table("Withheld measures", missing, about_missing, empty=panels.NOTHING), 12, 5),
        Cell(panels.table("Caveats in force", caveats, about_caveats, empty=panels.NOTHING), 24, 6),
    )


def _lookups(reader: Reader) -> tuple[Cell, ...]:
    cells = []
    for id_ in ("engine_population_hit", "engine_lookup_hit", "engine_external_hit"):
        ratio = ratio_of(id_)
        lines = (Line(reader.sides(id_, _BY).quotient, _NAMED),)
        cells.append(Cell(panels.over_time(ratio.title, lines, panels.about_ratio(ratio), unit="ratio"), 8, 8))
    sides = tuple(
        Line(reader.rate("engine", id_), title)
        for id_, title in (
            ("prompt_tokens", "prompt tokens"),
            ("cached_prompt_tokens", "cached prompt tokens"),
            ("lookup_tokens", "looked-up tokens"),
            ("lookup_hit_tokens", "looked-up tokens that hit"),
            ("excluded_prompt_tokens", "prompt tokens kept out of the ratio"),
        )
    )
    about = (
        "Both sides of the ratios above, in tokens per second. Looked-up tokens above prompt tokens mean retries, "
        "preemptions or requests that were aborted before their first token."
    )
    tier = reader.names.rate(ENGINE["cached_tokens_by_tier"], reader.short)
    tiers = (Line(summed(("tier",), reader.recorded(tier)), "{{tier}}"),)
    reasons = (Line(f"sum by (reason) ({reader.rated(ENGINE['excluded_prompt_tokens'])})", "{{reason}}"),)
    return (
        *cells,
        Cell(panels.over_time("Tokens behind the ratios", sides, about, unit="tokens/s"), 8, 8),
        Cell(
            panels.over_time(
                "Cached tokens by tier",
                tiers,
                "Where cached tokens were held when requests were admitted.",
                unit="tokens/s",
                stacked=True,
            ),
            8,
            8,
        ),
        Cell(
            panels.over_time(
                "Prompt tokens kept out, by reason",
                reasons,
                "Prompt tokens of intervals whose cached tokens cannot be trusted or are not reported.",
                unit="tokens/s",
            ),
            8,
            8,
        ),
    )


def _occupancy(reader: Reader) -> tuple[Cell, ...]:
    usage, capacity = ENGINE["kv_usage_ratio"], ENGINE["capacity_tokens"]
    # Weighted by what each engine holds: engines of two sizes have no plain mean.
    held, room = f"{reader.raw(capacity)} * {reader.raw(usage)}", reader.raw(capacity)
    occupancy = (
        Line(f"max by (model, source) ({reader.raw(usage)})", f"fullest: {_NAMED}"),
        Line(queries.ratio(summed(_BY, held), summed(_BY, room)), f"all: {_NAMED}"),
    )
    waiting = (
        Line(summed(_BY, reader.raw(ENGINE["running_requests"])), f"running: {_NAMED}"),
        Line(summed(_BY, reader.raw(ENGINE["waiting_requests"])), f"waiting: {_NAMED}"),
    )
    preempted = reader.recorded(pressure.preempted(reader.names))
    numbers = (
        Line(f"min({reader.recorded(pressure.block_size(reader.names))})", "smallest block"),
        Line(f"sum({reader.raw(capacity)})", "all KV caches"),
    )
    about_usage = (
        "Share of the KV cache held by running requests: tokens held divided by tokens that the caches can hold (in "
        "the denominator: every engine whose capacity is on its page; not in it: engines that do not tell it). Cached "
        "blocks that nobody references count as free, so a full cache at rest shows 0."
    )
    about_preempted = (
        "Preemptions divided by finished requests (in the denominator: requests that the engine finished; not in it: "
        "requests aborted by clients)."
    )
    blocks = panels.tile(
        "Blocks", numbers, "Size of a KV block and capacity of the caches.", unit="tokens", orientation="horizontal"
    )
    preemptions = panels.over_time(
        "Preemptions per finished request", (Line(preempted, _NAMED),), about_preempted, unit="ratio", part=False
    )
    return (
        Cell(panels.over_time("KV usage", occupancy, about_usage, unit="ratio"), 7, 8),
        Cell(panels.over_time("Requests running and waiting", waiting, "Depth of the queue.", unit="whole"), 7, 8),
        Cell(preemptions, 6, 8),
        Cell(blocks, 4, 8),
    )


def _evictions(reader: Reader) -> tuple[Cell, ...]:
    sampled = (
        "Sampled by vLLM, 1 % of blocks unless configured otherwise; any re-allocation of a block counts, not "
        "only evictions of cached ones."
    )
    titles = (
        ("block_idle_before_evict_seconds", "Idle before eviction"),
        ("block_lifetime_seconds", "Block lifetime"),
        ("block_reuse_gap_seconds", "Gap between two uses"),
    )
    cells = [
        Cell(
            panels.heatmap(title, reader.spread(ENGINE[id_]), f"{ENGINE[id_].help} {sampled}", unit="seconds"),
            8,
            9,
        )
        for id_, title in titles
    ]
    return tuple(cells)


def _latency(reader: Reader) -> tuple[Cell, ...]:
    computed = (
        Line(reader.rate("engine", "prefill_computed_tokens"), "prompt tokens computed"),
        Line(reader.rate("engine", "generation_tokens"), "tokens generated"),
    )
    about = "Work that caching did not save: prompt tokens computed in prefill, beside tokens generated."
    cells = [Cell(panels.over_time("Computed tokens", computed, about, unit="tokens/s"), 8, 9)]
    ttft = ENGINE["time_to_first_token_seconds"]
    cells.append(Cell(panels.heatmap("Time to first token", reader.spread(ttft), ttft.help, unit="seconds"), 8, 9))
    lines = [
        Line(f"{reader.mean(ENGINE[id_])}", title)
        for id_, title in (
            ("queue_seconds", "queue"),
            ("prefill_seconds", "prefill"),
            ("time_to_first_token_seconds", "first token"),
        )
    ]
    about = (
        "Mean seconds per request: seconds observed divided by requests observed (in the denominator: requests "
        "that reached that phase; not in it: requests that were dropped before)."
    )
    cells.append(
        Cell(
            panels.over_time("Where the time to the first token goes", lines, about, unit="seconds"),
            8,
            9,
        )
    )
    return (*cells, *(Cell(_quantiles(reader, *one), 12, 8) for one in _QUANTILES))


def _quantiles(reader: Reader, id_: str, title: str, samples: str) -> Visual:
    family = ENGINE[id_]
    lines = [Line(reader.quantile(share, family), f"P{share * 100:.0f}") for share in (0.5, 0.95)]
    lines.append(Line(summed((), reader.rated(family, part="_count")), samples, "per second"))
    about = (
        f"{family.help} Quantiles from vLLM's own buckets; how many observations are behind them is on the right axis."
    )
    faint = query_override("C", ("custom.axisPlacement", "right"), ("custom.lineWidth", 1), panels.PLAIN_TEXT)
    return panels.over_time(title, lines, about, unit="seconds", overrides=(faint,))
