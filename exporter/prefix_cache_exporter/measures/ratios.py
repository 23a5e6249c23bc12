"""Every ratio of the project. Nothing is ever called just a hit rate."""

from __future__ import annotations

from .family import Ratio

_REPORTED = "every input token of requests that report cached tokens, 0 included"
_UNREPORTED = "requests that say nothing about cached tokens; coverage shows them"

RATIOS = (
    Ratio(
        "engine_population_hit",
        "Population hit ratio (engine)",
        "engine",
        ("cached_prompt_tokens",),
        ("prompt_tokens",),
        "every prompt token the engine served, cached or not, matched prefix or not",
        "intervals whose cached tokens cannot be trusted; engine coverage shows them",
    ),
    Ratio(
        "engine_lookup_hit",
        "Lookup hit ratio",
        "engine",
        ("lookup_hit_tokens",),
        ("lookup_tokens",),
        "every token looked up in the local prefix cache, repeats of a lookup included where the version counts them",
        "requests that skip the cache (prompt log-probabilities, some pooling tasks)",
    ),
    Ratio(
        "engine_external_hit",
        "External-tier hit ratio",
        "engine",
        ("external_lookup_hit_tokens",),
        ("external_lookup_tokens",),
        "tokens asked of the external KV connector",
        "tokens found locally, from the release on that asks only for the rest",
    ),
    Ratio(
        "engine_coverage",
        "Engine coverage",
        "engine",
        ("prompt_tokens",),
        ("prompt_tokens", "excluded_prompt_tokens"),
        "every prompt token seen on the page",
        "nothing",
    ),
    Ratio(
        "usage_population_hit",
        "Population hit ratio (usage)",
        "usage",
        ("cached_prompt_tokens",),
        ("prompt_tokens",),
        _REPORTED,
        _UNREPORTED,
    ),
    Ratio(
        "usage_eligible_prefix",
        "Eligible-prefix effectiveness",
        "usage",
        ("eligible_cached_tokens",),
        ("eligible_tokens",),
        "tokens of a registered shared prefix that the engine or provider could have reused",
        "suffixes, conversation history, prefixes below the block or the provider's minimum, unregistered templates",
    ),
    Ratio(
        "usage_request_hit",
        "Request hit ratio",
        "usage",
        ("hit_requests",),
        ("reported_requests",),
        "requests that report cached tokens, 0 included",
        "requests that say nothing about cached tokens",
    ),
    Ratio(
        "usage_write_back",
        "Write-back ratio",
        "usage",
        ("cached_prompt_tokens",),
        ("written_prompt_tokens",),
        "tokens written to a prompt cache",
        "providers that write without reporting it",
    ),
    Ratio(
        "usage_net_input_cost",
        "Net input cost ratio",
        "usage",
        ("input_cost",),
        ("counterfactual_input_cost",),
        "what the input of priced requests would have cost without caching",
        "requests of unknown price, output, failed requests without usage",
    ),
    Ratio(
        "usage_request_coverage",
        "Coverage (requests)",
        "usage",
        ("reported_requests",),
        ("reported_requests", "unreported_requests"),
        "every request",
        "nothing",
    ),
    Ratio(
        "usage_token_coverage",
        "Coverage (input tokens)",
        "usage",
        ("prompt_tokens",),
        ("prompt_tokens", "unreported_prompt_tokens"),
        "every input token of a request whose input is known",
        "requests without a usage object; request coverage shows them",
    ),
    Ratio(
        "usage_eligible_coverage",
        "Coverage (eligible prefix)",
        "usage",
        ("eligible_requests",),
        ("reported_requests",),
        "requests that report cached tokens",
        "requests that say nothing about cached tokens",
    ),
)
