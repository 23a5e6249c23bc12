"""What gateways and tracers make of the usage of the providers behind them: total, read, write, uncached, output."""

from __future__ import annotations

import json

import pytest

from support.usage import ANTHROPIC, HIT, INCLUSIVE, RESPONSES, UNKNOWN, counts, settled


def test_vercel_5_shows_the_providers_own_rule_through():
    anthropic = {"inputTokens": 1018, "cachedInputTokens": 900, "outputTokens": 141, "totalTokens": 1159}
    cases = [
        ({"providerMetadata": {"anthropic": {"cacheCreationInputTokens": 7}}}, (1925, 900, 7, 1018, 141), "ok"),
        ({"provider": "anthropic.messages"}, (1918, 900, None, 1018, 141), "ok"),
        ({"provider": "amazon-bedrock"}, (1918, 900, None, 1018, 141), "ok"),
        ({"provider": "openai.responses"}, (1018, 900, None, 118, 141), "ok"),
        ({}, (1018, 900, None, 118, 141), "derived"),
    ]
    for envelope, expected, quality in cases:
        (record,) = settled("vercel_ai.v5", {**envelope, "usage": anthropic})
        assert (counts(record), record.quality) == (expected, quality)
    (open_,) = settled("vercel_ai.v5", {"usage": {"inputTokens": 1018, "cachedInputTokens": 900, "outputTokens": 141}})
    assert (counts(open_), open_.quality) == ((None, 900, None, None, 141), "ambiguous")
    (excluded,) = settled(
        "vercel_ai.v5",
        {"usage": {"inputTokens": 18, "cachedInputTokens": 2284, "totalTokens": 159, "outputTokens": 141}},
    )
    assert (counts(excluded), excluded.quality) == ((2302, 2284, None, 18, 141), "derived")


def test_kong_drops_anthropics_cached_tokens_so_that_only_the_uncached_part_is_known():
    line = {
        "ai": {
            "proxy": {"usage": {"prompt_tokens": 40, "completion_tokens": 5}, "meta": {"provider_name": "anthropic"}}
        }
    }
    (record,) = settled("kong.ai_proxy", line)
    assert (counts(record), record.quality) == ((None, None, None, 40, 5), "cache_unknown")


def test_portkeys_rule_depends_on_the_provider_behind_it():
    usage = {"prompt_tokens": 500, "completion_tokens": 50, "prompt_tokens_details": {"cached_tokens": 300}}
    (anthropic,) = settled("portkey.chat", {"provider": "anthropic", "usage": {**usage, "total_tokens": 850}})
    (bedrock,) = settled("portkey.chat", {"provider": "bedrock", "usage": {**usage, "total_tokens": 550}})
    assert counts(anthropic) == (800, 300, None, 500, 50)
    assert counts(bedrock) == (500, 300, None, 200, 50)


def test_openrouters_writes_may_stand_outside_of_the_prompt():
    details = {"cached_tokens": 300, "cache_write_tokens": 100}
    usage = {"prompt_tokens": 500, "completion_tokens": 50, "prompt_tokens_details": details}
    (inside,) = settled("openrouter.chat", {"usage": {**usage, "total_tokens": 550}})
    (outside,) = settled("openrouter.chat", {"usage": {**usage, "total_tokens": 650}})
    (must,) = settled("openrouter.chat", {"usage": {**usage, "prompt_tokens": 350, "total_tokens": 400}})
    assert counts(inside) == (500, 300, 100, 100, 50)
    assert (counts(outside), outside.quality) == ((600, 300, 100, 200, 50), "derived")
    assert (counts(must), must.quality) == ((450, 300, 100, 50, 50), "derived")


def test_litellm_attempts_replays_and_pass_through_bodies():
    base = {"id": "1", "status": "success", "startTime": 10.0, "completionStartTime": 10.5, "endTime": 12.0}
    usage = {"usage_object": HIT, "attempted_retries": 1}
    (retried,) = settled("litellm.slp", {**base, "custom_llm_provider": "hosted_vllm", "metadata": usage})
    assert (retried.attempt, retried.provider, retried.ttft_seconds, retried.duration_seconds) == (
        "retry",
        "vllm",
        0.5,
        2.0,
    )
    (replay,) = settled("litellm.slp", {**base, "cache_hit": True, "metadata": usage})
    assert (replay.quality, counts(replay)) == ("served_from_gateway_cache", (None,) * 5)
    (passed,) = settled("litellm.slp", {**base, "metadata": {"usage_object": RESPONSES}})
    assert counts(passed) == INCLUSIVE
    (unclear,) = settled("litellm.slp", {**base, "metadata": {"usage_object": {**ANTHROPIC, "input_tokens": 4000}}})
    assert unclear.quality == "ambiguous"
    (failed,) = settled(
        "litellm.slp",
        {"status": "failure", "prompt_tokens": 0, "completion_tokens": 0, "metadata": {"usage_object": None}},
    )
    assert (failed.status, failed.quality) == ("failed", "usage_missing")


def test_spend_log_rows_hold_json_and_truth_values_as_text():
    row = {"request_id": "a", "status": "success", "prompt_tokens": 900, "completion_tokens": 50, "total_tokens": 950}
    metadata = json.dumps({"usage_object": HIT, "additional_usage_values": {"cache_read_input_tokens": 0}})
    (record,) = settled("litellm.spend_log", {**row, "cache_hit": "False", "metadata": metadata})
    assert counts(record) == INCLUSIVE
    for replayed in ({**row, "cache_hit": "True"}, {**row, "request_id": "a_cache_hit17.5"}):
        (record,) = settled("litellm.spend_log", {**replayed, "metadata": metadata})
        assert record.quality == "served_from_gateway_cache"


def test_an_otlp_export_request_holds_many_spans_of_which_some_are_calls_of_a_model():
    def span(name, **attributes):
        kinds = {int: lambda value: {"intValue": str(value)}, str: lambda value: {"stringValue": value}}
        listed = [
            {"key": key.replace("_0_", "."), "value": kinds[type(value)](value)} for key, value in attributes.items()
        ]
        return {
            "spanId": name,
            "startTimeUnixNano": "1790000000000000000",
            "endTimeUnixNano": "1790000001500000000",
            "attributes": listed,
        }

    spans = [
        span("http", http_0_method="POST"),
        span("agent", gen_ai_0_operation_0_name="invoke_agent"),
        span("chat", gen_ai_0_operation_0_name="chat", gen_ai_0_provider_0_name="aws.bedrock"),
    ]
    spans[1]["attributes"] += (
        used := [
            {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "900"}},
            {"key": "gen_ai.usage.output_tokens", "value": {"intValue": "50"}},
            {"key": "gen_ai.usage.cache_read_input_tokens", "value": {"intValue": "640"}},
        ]
    )
    spans[2]["attributes"] += used
    (record,) = settled("otel.span", {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})
    assert counts(record) == INCLUSIVE
    assert (record.provider, record.time, record.duration_seconds, record.id) == ("bedrock", 1790000000.0, 1.5, "chat")


LEGACY_NAMES = [
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.cache_read_input_tokens",
    "gen_ai.usage.input_tokens.cached",
    "gen_ai.usage.input_cached_tokens",
    "gen_ai.usage.cached_tokens",
    "gen_ai.usage.details.cache_read_tokens",
]


@pytest.mark.parametrize("name", LEGACY_NAMES)
def test_otel_names_of_cached_tokens_old_and_new(name):
    line = {"gen_ai.usage.prompt_tokens": "900", "gen_ai.usage.completion_tokens": "50", name: "640"}
    (record,) = settled("otel.flat", line)
    assert counts(record) == INCLUSIVE


def test_langfuse_numbers_are_disjoint_where_the_total_says_so():
    usage = {"input": 500, "input_cached_tokens": 300, "output": 50}
    (disjoint,) = settled("langfuse.usage_details", {"type": "GENERATION", "usageDetails": {**usage, "total": 850}})
    (inclusive,) = settled("langfuse.usage_details", {"type": "GENERATION", "usageDetails": {**usage, "total": 550}})
    (must,) = settled(
        "langfuse.usage_details", {"usageDetails": {"input": 86, "input_cached_tokens": 17817, "output": 5}}
    )
    assert settled("langfuse.usage_details", {"type": "SPAN"}) == []
    assert (counts(disjoint), disjoint.quality) == ((800, 300, None, 500, 50), "ok")
    assert (counts(inclusive), inclusive.quality) == ((500, 300, None, 200, 50), "derived")
    assert counts(must) == (17903, 17817, None, 86, 5)


def test_azure_rows_of_one_request_are_one_record():
    rows = [
        {"CorrelationId": "c", "SequenceNumber": 0, "PromptTokens": 900, "CompletionTokens": 50, "TotalTokens": 950},
        {"CorrelationId": "c", "SequenceNumber": 1, "ResponseMessages": []},
    ]
    (record,) = settled("azure.apim_llm_log", *rows)
    assert (counts(record), record.quality, record.status) == (UNKNOWN, "cache_unknown", "success")
