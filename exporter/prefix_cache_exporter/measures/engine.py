"""The engine plane: counters of a vLLM server, one population, what the scheduler saw."""

from __future__ import annotations

from .family import Family

RELEASE = ("source", "provider", "model", "template", "template_revision")
"""Labels that the recording rules keep."""
ATTRIBUTED = (*RELEASE, "engine")
"""Labels of engine counters: the release in force, and the data-parallel rank."""
ENGINE = ("source", "provider", "model", "engine")
"""Labels of engine gauges: a level belongs to no release."""


def _counter(id_: str, unit: str, help_: str, *labels: str, name: str | None = None) -> Family:
    return Family(id_, f"prefix_cache_engine_{name or id_}", "counter", unit, help_, (*ATTRIBUTED, *labels))


def _gauge(id_: str, unit: str, help_: str, *labels: str) -> Family:
    return Family(id_, f"prefix_cache_engine_{id_}", "gauge", unit, help_, (*ENGINE, *labels))


def _histogram(id_: str, help_: str) -> Family:
    return Family(id_, f"prefix_cache_engine_{id_}", "histogram", "seconds", help_, ATTRIBUTED)


COUNTERS = (
    _counter(
        "prompt_tokens",
        "tokens",
        "Prompt tokens of intervals in which cached prompt tokens are known; "
        "the others are in prefix_cache_engine_excluded_prompt_tokens_total.",
    ),
    _counter(
        "cached_prompt_tokens", "tokens", "Prompt tokens that the engine took from its caches instead of computing."
    ),
    _counter(
        "excluded_prompt_tokens",
        "tokens",
        "Prompt tokens kept out of both sides of the population hit ratio, by reason.",
        "reason",
    ),
    _counter("lookup_tokens", "tokens", "Tokens looked up in the local prefix cache, as the engine counts lookups."),
    _counter("lookup_hit_tokens", "tokens", "Looked-up tokens found in the local prefix cache."),
    _counter("external_lookup_tokens", "tokens", "Tokens asked of an external KV connector."),
    _counter("external_lookup_hit_tokens", "tokens", "Tokens that an external KV connector had."),
    _counter(
        "cached_tokens_by_tier",
        "tokens",
        "Cached tokens by the tier that held them, counted at admission.",
        "tier",
        name="tier_cached_tokens",
    ),
    _counter("prefill_computed_tokens", "tokens", "Prompt tokens that were computed in prefill."),
    _counter("generation_tokens", "tokens", "Tokens generated."),
    _counter("preemptions", "requests", "Requests preempted because KV blocks ran out."),
    _counter("finished_requests", "requests", "Requests finished by the engine, by reason.", "reason"),
)

HISTOGRAMS = (
    _histogram("block_lifetime_seconds", "Sampled time from a KV block's allocation to its eviction."),
    _histogram("block_idle_before_evict_seconds", "Sampled time a KV block lay unused before it was evicted."),
    _histogram("block_reuse_gap_seconds", "Sampled time between two uses of a KV block."),
    _histogram("time_to_first_token_seconds", "Time from arrival to the first token."),
    _histogram("prefill_seconds", "Time a request spent in prefill."),
    _histogram("queue_seconds", "Time a request waited before it was scheduled."),
    _histogram("inter_token_seconds", "Time between two output tokens."),
    _histogram("request_seconds", "Time from arrival to the last token."),
)

GAUGES = (
    _gauge("running_requests", "requests", "Requests being executed."),
    _gauge("waiting_requests", "requests", "Requests waiting to be scheduled."),
    _gauge(
        "kv_usage_ratio",
        "ratio",
        "Share of KV blocks held by running requests; cached blocks that nobody references count as free.",
    ),
    _gauge(
        "reported_block_hit_ratio",
        "ratio",
        "Block hit ratio since its start as a V0 engine itself reports it, with neither numerator nor denominator; "
        "absent where prefix caching is off and from all later engines.",
    ),
    _gauge("block_size_tokens", "tokens", "Tokens in one KV block."),
    _gauge("capacity_tokens", "tokens", "Tokens that the KV cache of the whole server can hold."),
    _gauge("prefix_caching_enabled", "1", "1 where prefix caching is on, 0 where it is off."),
    _gauge("sleep_state", "1", "1 for the sleep state the engine is in, 0 for the others.", "sleep_state"),
)

_SOURCE = ("source",)

STATUS = (
    Family(
        "up", "prefix_cache_engine_up", "gauge", "1", "1 if the last poll of the engine gave a whole page.", _SOURCE
    ),
    Family(
        "info",
        "prefix_cache_engine_info",
        "info",
        "1",
        "Engine version, metric map and cache settings in force.",
        (*ENGINE, "engine_version", "metric_map", "prefix_caching", "hash_algorithm"),
    ),
    Family(
        "map_state",
        "prefix_cache_engine_map_state",
        "gauge",
        "1",
        "1 for the state the metric map is in, 0 for the others: verified, unverified, mismatch, unknown.",
        ("source", "state"),
    ),
    Family(
        "caveat",
        "prefix_cache_engine_caveat",
        "gauge",
        "1",
        "1 while a caveat of the metric map is active; `maps show` says what it means.",
        ("source", "caveat"),
    ),
    Family(
        "withheld",
        "prefix_cache_engine_withheld",
        "gauge",
        "1",
        "1 for each measure that is withheld now, with the reason.",
        ("source", "measure", "reason"),
    ),
    Family("polls", "prefix_cache_engine_polls", "counter", "polls", "Polls of the engine's page.", _SOURCE),
    Family(
        "poll_errors",
        "prefix_cache_engine_poll_errors",
        "counter",
        "polls",
        "Polls that gave no page, by reason.",
        ("source", "reason"),
    ),
    Family(
        "poll_duration_seconds",
        "prefix_cache_engine_poll_duration_seconds",
        "gauge",
        "seconds",
        "Duration of the last poll.",
        _SOURCE,
    ),
    Family(
        "last_success_timestamp_seconds",
        "prefix_cache_engine_last_success_timestamp_seconds",
        "gauge",
        "seconds",
        "When a poll last succeeded, in seconds since 1970.",
        _SOURCE,
    ),
    Family(
        "restarts",
        "prefix_cache_engine_restarts",
        "counter",
        "restarts",
        "Restarts of the engine that were recognised.",
        _SOURCE,
    ),
    Family(
        "map_mismatches",
        "prefix_cache_engine_map_mismatches",
        "counter",
        "polls",
        "Polls whose page contradicted the metric map, by reason.",
        ("source", "reason"),
    ),
    Family(
        "anomalies",
        "prefix_cache_engine_anomalies",
        "counter",
        "events",
        "Increases that could not be believed and were not counted, by reason.",
        ("source", "reason"),
    ),
    Family(
        "unmapped_models",
        "prefix_cache_engine_unmapped_models",
        "gauge",
        "models",
        "Model names on the page that the configured model aliases do not name.",
        _SOURCE,
    ),
)

FAMILIES = (*COUNTERS, *HISTOGRAMS, *GAUGES, *STATUS)
