"""The usage plane: one usage object per request, from a gateway, a provider or vLLM's own responses."""

from __future__ import annotations

from .family import Family

MONEY_SCALE = 10**12
"""Stored integers per currency unit: a trillionth, so that sums of per-record costs are exact."""

LABELS = ("source", "provider", "model", "template", "template_revision", "namespace", "task")
"""Labels of every per-record family. Rules keep all but `task`."""
OUTCOME = (*LABELS, "status", "attempt")
"""Failed, cancelled and retried requests keep their tokens and cost apart by these two."""


def _counter(id_: str, unit: str, help_: str, *labels: str, scale: int = 1) -> Family:
    return Family(id_, f"prefix_cache_usage_{id_}", "counter", unit, help_, (*OUTCOME, *labels), scale)


RECORDS = (
    _counter("requests", "requests", "Requests by status; attempt is `retry` for attempts after the first."),
    _counter("reported_requests", "requests", "Requests whose usage reports cached tokens, 0 included."),
    _counter("unreported_requests", "requests", "Requests whose usage says nothing about cached tokens."),
    _counter("hit_requests", "requests", "Requests with more than 0 cached tokens."),
    _counter("prompt_tokens", "tokens", "Input tokens of requests that report cached tokens, cached ones included."),
    _counter("unreported_prompt_tokens", "tokens", "Input tokens of requests that say nothing about cached tokens."),
    _counter("cached_prompt_tokens", "tokens", "Input tokens read from a prompt cache."),
    _counter(
        "written_prompt_tokens",
        "tokens",
        "Input tokens written to a prompt cache, by time to live (5m, 30m, 1h, 12h, unknown).",
        "ttl",
    ),
    _counter("uncached_prompt_tokens", "tokens", "Input tokens neither read from nor written to a prompt cache."),
    _counter("output_tokens", "tokens", "Output tokens."),
    _counter(
        "eligible_tokens",
        "tokens",
        "Tokens of a registered shared prefix that could have been reused, in requests that report cached tokens.",
    ),
    _counter("eligible_cached_tokens", "tokens", "Cached tokens inside the eligible shared prefix."),
    _counter("eligible_requests", "requests", "Requests that report cached tokens and whose eligible prefix is known."),
    _counter(
        "input_cost",
        "currency",
        "Input cost of priced requests by component: read, write, uncached.",
        "currency",
        "component",
        scale=MONEY_SCALE,
    ),
    _counter("output_cost", "currency", "Output cost of priced requests.", "currency", scale=MONEY_SCALE),
    _counter(
        "counterfactual_input_cost",
        "currency",
        "What the input of the same priced requests would have cost without caching.",
        "currency",
        scale=MONEY_SCALE,
    ),
    _counter("priced_requests", "requests", "Requests whose input cost is known.", "currency"),
    _counter("unpriced_requests", "requests", "Requests whose cost is not known, by reason.", "reason"),
)

_TIMED = (*LABELS, "prompt_band", "cache_state")

HISTOGRAMS = (
    Family(
        "time_to_first_token_seconds",
        "prefix_cache_usage_time_to_first_token_seconds",
        "histogram",
        "seconds",
        "Time to the first non-empty content fragment, by prompt-length band and cache state.",
        _TIMED,
    ),
    Family(
        "duration_seconds",
        "prefix_cache_usage_duration_seconds",
        "histogram",
        "seconds",
        "Time to the end of the response, by prompt-length band and cache state.",
        _TIMED,
    ),
)

_RELEASE = ("source", "provider", "model", "template", "template_revision")

FINGERPRINTS = (
    Family(
        "leading_fingerprints",
        "prefix_cache_usage_leading_fingerprints",
        "gauge",
        "fingerprints",
        "Distinct leading fingerprints in the sliding window: exact up to 256, beyond with a standard error of 2.3 %.",
        _RELEASE,
    ),
    Family(
        "leading_fingerprint_requests",
        "prefix_cache_usage_leading_fingerprint_requests",
        "gauge",
        "requests",
        "Requests with a leading fingerprint in the same sliding window.",
        _RELEASE,
    ),
)

_SOURCE = ("source",)

STATUS = (
    Family(
        "quarantined_records",
        "prefix_cache_usage_quarantined_records",
        "counter",
        "records",
        "Usage records that could not be decided and were not counted, by reason.",
        ("source", "reason"),
    ),
    Family(
        "anomalies",
        "prefix_cache_usage_anomalies",
        "counter",
        "records",
        "Oddities in usage records, by kind; the record itself may still be counted.",
        ("source", "kind"),
    ),
    Family("lines", "prefix_cache_usage_lines", "counter", "lines", "Log lines read.", _SOURCE),
    Family(
        "lost_lines",
        "prefix_cache_usage_lost_lines",
        "counter",
        "lines",
        "Log lines that gave no record though they should have, by reason.",
        ("source", "reason"),
    ),
    Family(
        "ignored_lines",
        "prefix_cache_usage_ignored_lines",
        "counter",
        "lines",
        "Log lines that are not usage records by the map's own rule, by reason.",
        ("source", "reason"),
    ),
    Family(
        "lost_files",
        "prefix_cache_usage_lost_files",
        "counter",
        "files",
        "Rotated files that went away or turned unreadable before they were read to the end, by reason.",
        ("source", "reason"),
    ),
    Family(
        "duplicate_records",
        "prefix_cache_usage_duplicate_records",
        "counter",
        "records",
        "Repeats of a settled record that were ignored.",
        _SOURCE,
    ),
    Family(
        "skewed_records",
        "prefix_cache_usage_skewed_records",
        "counter",
        "records",
        "Records whose own time is over a day old (past), over five minutes ahead (future) or unreadable (unparsable).",
        ("source", "direction"),
    ),
    Family(
        "open_records",
        "prefix_cache_usage_open_records",
        "gauge",
        "records",
        "Records still merging, not yet settled.",
        _SOURCE,
    ),
    Family("log_files", "prefix_cache_usage_log_files", "gauge", "files", "Log files being followed.", _SOURCE),
    Family(
        "log_unread_bytes",
        "prefix_cache_usage_log_unread_bytes",
        "gauge",
        "bytes",
        "Bytes written to followed files and not yet read.",
        _SOURCE,
    ),
    Family(
        "log_last_record_timestamp_seconds",
        "prefix_cache_usage_log_last_record_timestamp_seconds",
        "gauge",
        "seconds",
        "When a record was last read from the log, in seconds since 1970.",
        _SOURCE,
    ),
    Family(
        "log_readable",
        "prefix_cache_usage_log_readable",
        "gauge",
        "1",
        "1 if every matching log file could be opened at the last look and at least one matched.",
        _SOURCE,
    ),
)

FAMILIES = (*RECORDS, *HISTOGRAMS, *FINGERPRINTS, *STATUS)
