"""One line or stream of every kind, its numbers beside it: total, read, write, uncached, output."""

from __future__ import annotations

import json

import pytest

from prefix_cache_exporter.documents import data_root
from prefix_cache_exporter.usage.intake import Intake
from prefix_cache_exporter.usage.maps.book import get_map, shipped_maps
from prefix_cache_exporter.usage.maps.files import read_map
from prefix_cache_exporter.usage.record import UsageRecord
from support.usage import counts, encode, settled

FULL = {"prompt_tokens": 900, "completion_tokens": 50, "total_tokens": 950}
HIT = {**FULL, "prompt_tokens_details": {"cached_tokens": 640}}
ANTHROPIC = {"input_tokens": 40, "cache_read_input_tokens": 800, "cache_creation_input_tokens": 60, "output_tokens": 50}
RESPONSES = {
    "input_tokens": 900,
    "output_tokens": 50,
    "total_tokens": 950,
    "input_tokens_details": {"cached_tokens": 640},
}
INCLUSIVE = (900, 640, None, 260, 50)
UNKNOWN = (900, None, None, None, 50)
EXCLUSIVE = (900, 800, 60, 40, 50)
OPENAI_SHAPED = [
    "anthropic.chat",
    "azure.chat",
    "databricks.chat",
    "deepseek.chat",
    "dynamo.chat",
    "fireworks.chat",
    "google.chat",
    "groq.chat",
    "mistral.chat",
    "moonshot.chat",
    "openai.chat",
    "openrouter.chat",
    "portkey.chat",
    "qwen.chat",
    "sglang.chat",
    "together.chat",
    "vllm.chat",
    "xai.chat",
]


@pytest.mark.parametrize("name", [*OPENAI_SHAPED, "openai.completions", "vllm.completions", "sglang.completions"])
def test_chat_completions_include_cached_tokens(name):
    (hit,) = settled(name, {"id": "x", "model": "m", "usage": HIT})
    (unknown,) = settled(name, {"id": "x", "usage": {**FULL, "prompt_tokens_details": None}})
    (failed,) = settled(name, {"error": {"message": "no"}})
    assert (counts(hit), hit.quality, hit.model, hit.status) == (INCLUSIVE, "ok", "m", "success")
    assert (counts(unknown), unknown.quality) == (UNKNOWN, "cache_unknown")
    assert (failed.status, failed.quality) == ("failed", "usage_missing")


@pytest.mark.parametrize("name", [f"{name}.stream" for name in OPENAI_SHAPED])
def test_chat_streams_end_with_the_chunk_that_has_usage_and_no_choices(name):
    chunk = {"id": "x", "object": "chat.completion.chunk", "model": "m", "usage": None}
    lines = [
        {**chunk, "choices": [{"delta": {"content": "hi"}}]},
        {**chunk, "choices": [{"delta": {}, "finish_reason": "stop"}]},
        {**chunk, "choices": [], "usage": HIT},
    ]
    (record,) = settled(name, *lines)
    assert (counts(record), record.quality, record.status) == (INCLUSIVE, "ok", "success")
    (cut,) = settled(name, lines[0])
    assert (counts(cut), cut.quality, cut.status) == ((None,) * 5, "usage_missing", "incomplete")
    (silent,) = settled(name, *lines[:2])
    assert (silent.quality, silent.status) == ("usage_missing", "success")


@pytest.mark.parametrize(
    ("name", "provider"),
    [
        ("openai.responses", "openai"),
        ("vllm.responses", "vllm"),
        ("sglang.responses", "sglang"),
        ("xai.responses", "xai"),
    ],
)
@pytest.mark.parametrize(
    ("state", "status"),
    [("completed", "success"), ("incomplete", "incomplete"), ("failed", "failed"), ("cancelled", "cancelled")],
)
def test_responses_and_their_streams(name, provider, state, status):
    body = {"id": "resp_1", "object": "response", "status": state, "model": "m", "usage": RESPONSES}
    (record,) = settled(name, body)
    assert (counts(record), record.status, record.provider) == (INCLUSIVE, status, provider)
    events = [
        {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "usage": None}},
        {"type": "response.output_text.delta", "delta": "hi"},
        {"type": f"response.{state}", "response": body},
    ]
    (streamed,) = settled(f"{name}.stream", *events)
    assert (counts(streamed), streamed.status, streamed.id) == (INCLUSIVE, status, "resp_1")
    (cut,) = settled(f"{name}.stream", *events[:2])
    assert (cut.quality, cut.status) == ("usage_missing", "incomplete")


@pytest.mark.parametrize(
    ("name", "provider"),
    [("anthropic.messages", "anthropic"), ("bedrock.invoke_model", "bedrock"), ("vllm.messages", "vllm")],
)
def test_messages_leave_cached_tokens_out_of_the_input(name, provider):
    (record,) = settled(name, {"type": "message", "id": "msg_1", "usage": ANTHROPIC})
    assert (counts(record), record.provider, record.quality) == (EXCLUSIVE, provider, "ok")
    assert record.cache_write_by_ttl == {"unknown": 60}
    (failed,) = settled(name, {"type": "error", "error": {"type": "overloaded_error"}})
    assert (failed.status, failed.quality) == ("failed", "usage_missing")


def test_vllm_messages_leave_cache_numbers_out_where_unknown_and_the_input_is_the_whole_prompt():
    (record,) = settled("vllm.messages", {"type": "message", "usage": {"input_tokens": 574, "output_tokens": 8}})
    assert (counts(record), record.quality) == ((574, None, None, None, 8), "cache_unknown")
    usage = {"input_tokens": 62, "output_tokens": 8, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 512}
    start = {"id": "c1", "model": "tiny", "usage": {"input_tokens": 574, "output_tokens": 0}}
    events = [
        {"type": "message_start", "message": start},
        {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": usage},
        {"type": "message_stop"},
    ]
    stream = [line for event in events for line in (f"event: {event['type']}", f"data: {json.dumps(event)}", "")]
    for name in ("vllm.messages.stream", "sglang.messages.stream"):
        (record,) = settled(name, *stream)
        assert (counts(record), record.status) == ((574, 512, 0, 62, 8), "success")


def test_an_anthropic_stream_that_was_cut_knows_its_input_and_a_lower_bound_of_its_output():
    start = {"type": "message_start", "message": {"id": "m", "usage": {**ANTHROPIC, "output_tokens": 1}}}
    (record,) = settled("anthropic.messages.stream", start, {"type": "ping"})
    assert (counts(record), record.quality, record.status) == ((900, 800, 60, 40, 1), "partial", "incomplete")


def test_an_anthropic_error_event_ends_the_stream():
    start = {"type": "message_start", "message": {"id": "m", "usage": ANTHROPIC}}
    error = {"type": "error", "error": {"type": "overloaded_error"}}
    (record,) = settled("anthropic.messages.stream", start, error)
    assert (record.status, record.quality, record.total_input_tokens) == ("failed", "partial", 900)


def test_events_before_the_start_of_a_stream_open_nothing():
    assert settled("anthropic.messages.stream", {"type": "message_stop"}) == []
    (record,) = settled("anthropic.messages.stream", {"type": "message_delta", "usage": {"output_tokens": 9}})
    assert (counts(record), record.quality) == ((None, None, None, None, 9), "partial")


def test_a_kimi_anthropic_endpoint_that_includes_cached_tokens_needs_the_override():
    usage = {"input_tokens": 900, "cache_read_input_tokens": 640, "cache_creation_input_tokens": 0, "output_tokens": 50}
    (wrong,) = settled("anthropic.messages", {"usage": usage})
    (right,) = settled("anthropic.messages", {"usage": usage}, includes=True)
    assert wrong.total_input_tokens == 1540
    assert (counts(right), right.quality) == ((900, 640, 0, 260, 50), "override")


def test_bedrock_streams_of_openai_models_include_cached_tokens_and_count_them_into_the_total_again():
    usage = {"inputTokens": 4995, "outputTokens": 19, "totalTokens": 10007, "cacheWriteInputTokens": 4993}
    lines = [
        {"messageStart": {"role": "assistant"}},
        {"messageStop": {"stopReason": "end_turn"}},
        {"metadata": {"usage": usage}},
    ]
    (overridden,) = settled("bedrock.converse.stream", *lines, includes=True)
    assert (counts(overridden), overridden.quality) == ((4995, None, 4993, 2, 19), "override")
    (plain,) = settled("bedrock.converse.stream", *lines)
    assert plain.total_input_tokens == 9988  # every check passes: only the model's family or the operator tells
    (told,) = settled("bedrock.converse.stream", {**lines[2], "modelId": "openai.gpt-5.6-v1:0"})
    assert told.total_input_tokens == 4995


CASES = {
    "openai.realtime": (
        {
            "type": "response.done",
            "response": {
                "id": "r",
                "status": "completed",
                "usage": {
                    "input_tokens": 900,
                    "output_tokens": 50,
                    "total_tokens": 950,
                    "input_token_details": {"cached_tokens": 640, "cached_tokens_details": {"text_tokens": 640}},
                },
            },
        },
        INCLUSIVE,
    ),
    "anthropic.usage_report": (
        {
            "data": [
                {
                    "starting_at": "2026-09-01T00:00:00Z",
                    "results": [
                        {
                            "uncached_input_tokens": 40,
                            "cache_read_input_tokens": 800,
                            "output_tokens": 50,
                            "model": "claude-opus-5",
                            "cache_creation": {"ephemeral_5m_input_tokens": 20, "ephemeral_1h_input_tokens": 40},
                        }
                    ],
                }
            ]
        },
        EXCLUSIVE,
    ),
    "bedrock.converse": (
        {
            "usage": {
                "inputTokens": 40,
                "outputTokens": 50,
                "totalTokens": 950,
                "cacheReadInputTokens": 800,
                "cacheWriteInputTokenCount": 60,
            }
        },
        EXCLUSIVE,
    ),
    "cohere.chat": (
        {"id": "c", "usage": {"tokens": {"input_tokens": 900.0, "output_tokens": 50.0}, "cached_tokens": 640.0}},
        INCLUSIVE,
    ),
    "cohere.chat.stream": (
        {
            "type": "message-end",
            "delta": {
                "finish_reason": "COMPLETE",
                "usage": {"billed_units": {"input_tokens": 900.0, "output_tokens": 50.0}, "cached_tokens": 640.0},
            },
        },
        INCLUSIVE,
    ),
    "google.live": (
        {
            "usageMetadata": {
                "promptTokenCount": 900,
                "responseTokenCount": 50,
                "totalTokenCount": 950,
                "cachedContentTokenCount": 640,
            }
        },
        INCLUSIVE,
    ),
    "google.generate_content": (
        {
            "usage_metadata": {
                "prompt_token_count": 900,
                "candidates_token_count": 50,
                "cached_content_token_count": None,
                "total_token_count": 950,
            }
        },
        (900, 0, None, 900, 50),
    ),
    "perplexity.chat": (
        {
            "usage": {
                "prompt_tokens": 900,
                "completion_tokens": 20,
                "total_tokens": 920,
                "reasoning_tokens": 25,
                "citation_tokens": 5,
            }
        },
        UNKNOWN,
    ),
    "perplexity.responses": (
        {"usage": {**RESPONSES, "input_tokens_details": {"cache_read_input_tokens": 640}}},
        INCLUSIVE,
    ),
    "xai.grpc": (
        {
            "usage": {
                "prompt_tokens": 900,
                "completion_tokens": 20,
                "reasoning_tokens": 30,
                "total_tokens": 950,
                "cached_prompt_text_tokens": 640,
            }
        },
        INCLUSIVE,
    ),
    "xai.chat": (
        {
            "usage": {
                **HIT,
                "completion_tokens": 20,
                "completion_tokens_details": {"reasoning_tokens": 30},
                "prompt_tokens_details": {"text_tokens": 900, "cached_tokens": 640},
            }
        },
        INCLUSIVE,
    ),
    "databricks.chat": ({"usage": {**FULL, "cache_read_input_tokens": 640}}, INCLUSIVE),
    "kong.ai_proxy": (
        {"ai": {"proxy": {"usage": HIT, "meta": {"provider_name": "openai", "response_model": "m"}}}},
        INCLUSIVE,
    ),
    "pydantic_ai.usage": (
        {"usage": {"input_tokens": 900, "cache_read_tokens": 640, "cache_write_tokens": 60, "output_tokens": 50}},
        (900, 640, 60, 200, 50),
    ),
    "vercel_ai.v6": (
        {"usage": {"inputTokens": {"total": 900, "noCache": 260, "cacheRead": 640}, "outputTokens": {"total": 50}}},
        INCLUSIVE,
    ),
    "openinference.flat": (
        {
            "attributes": [
                {"key": "openinference.span.kind", "value": {"stringValue": "LLM"}},
                {"key": "llm.token_count.prompt", "value": {"intValue": "900"}},
                {"key": "llm.token_count.completion", "value": {"intValue": "50"}},
                {"key": "llm.token_count.prompt_details.cache_read", "value": {"intValue": "640"}},
            ]
        },
        INCLUSIVE,
    ),
    "otel.flat": (
        {"gen_ai": {"usage": {"input_tokens": 900, "output_tokens": 50, "cache_read": {"input_tokens": 640}}}},
        INCLUSIVE,
    ),
    "cloudflare.aig_log": (
        {"result": [{"tokens_in": 900, "tokens_out": 50, "cached": False, "success": True}]},
        UNKNOWN,
    ),
    "cloudflare.logpush": ({"StatusCode": 200, "ResponseBody": {"usage": HIT}}, INCLUSIVE),
    "envoy.access_log": (
        {
            "response_code": 200,
            "llm_input_token": "900",
            "llm_output_token": "50",
            "llm_cached_input_token": "640",
            "llm_cache_creation_input_token": "-",
        },
        INCLUSIVE,
    ),
    "helicone.model_usage": (
        {
            "prompt_tokens": 40,
            "completion_tokens": 50,
            "prompt_cache_read_tokens": 800,
            "prompt_cache_write_tokens": 60,
        },
        EXCLUSIVE,
    ),
    "langchain.usage_metadata": (
        {
            "kwargs": {
                "usage_metadata": {
                    "input_tokens": 900,
                    "output_tokens": 50,
                    "total_tokens": 950,
                    "input_token_details": {"flex_cache_read": 640},
                }
            }
        },
        INCLUSIVE,
    ),
    "openai.org_usage": (
        {
            "data": [
                {
                    "start_time": 1790000000,
                    "results": [{"input_tokens": 900, "input_cached_tokens": 640, "output_tokens": 50}],
                }
            ]
        },
        INCLUSIVE,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_line_of_a_format(name):
    line, expected = CASES[name]
    (record,) = settled(name, line)
    assert counts(record) == expected


@pytest.mark.parametrize("name", shipped_maps().formats)
def test_every_format_gives_a_record_or_nothing_for_an_empty_object_and_marks_whose_it_is(name):
    for record in settled(name, {}):
        assert record.quality == "usage_missing"
        assert record.format == name


@pytest.mark.parametrize("path", sorted((data_root() / "usage").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_shipped_map_keeps_the_schema(path):
    assert read_map(path)["format"] == path.stem


def test_every_shipped_map_compiles_and_says_what_it_is():
    book = shipped_maps()
    for name in book.formats:
        usage_map = book.get(name)
        assert usage_map.title
        assert usage_map.tokens
        assert usage_map.usage
        assert all(book.get(alias) is usage_map for alias in usage_map.aliases)
    assert sum(book.get(name).aggregate for name in book.formats) == 3


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


def codex(total, last, **payload):
    info = {"total_token_usage": usage(*total), "last_token_usage": usage(*last)}
    return {
        "type": "event_msg",
        "timestamp": "2026-05-01T10:00:00Z",
        "payload": {"type": "token_count", "info": info, **payload},
    }


def usage(input_, cached, written, output):
    return {
        "input_tokens": input_,
        "cached_input_tokens": cached,
        "cache_write_input_tokens": written,
        "output_tokens": output,
        "reasoning_output_tokens": 0,
        "total_tokens": input_ + output,
    }


def test_codex_numbers_are_sums_that_are_sent_again_and_repeated_by_forks():
    meta = {"type": "session_meta", "payload": {"id": "parent"}}
    model = {"type": "turn_context", "payload": {"model": "gpt-5.6-codex"}}
    first, second = (
        codex((1000, 0, 900, 100), (1000, 0, 900, 100)),
        codex((3000, 950, 1000, 300), (2000, 950, 100, 200)),
    )
    nothing = {"type": "event_msg", "payload": {"type": "token_count", "info": None}}
    records = settled("codex.jsonl", meta, model, nothing, first, first, second, second)
    assert [counts(record) for record in records] == [(1000, 0, 900, 100, 100), (2000, 950, 100, 950, 200)]
    assert {record.model for record in records} == {"gpt-5.6-codex"}

    intake = Intake(get_map("codex.jsonl"))
    fork = {"type": "session_meta", "payload": {"id": "child", "forked_from_id": "parent"}}
    own = codex((4000, 1900, 1000, 400), (1000, 950, 0, 100))
    intake.take([encode(line) for line in (meta, model, first, second)], 0.0, "parent.jsonl")
    found = intake.take([encode(line) for line in (fork, meta, model, first, second, own)], 0.0, "child.jsonl")
    assert [counts(item) for item in found if isinstance(item, UsageRecord)] == [(1000, 950, 0, 50, 100)]


def test_codex_sums_that_begin_again_count_the_last_request_alone():
    records = settled("codex.jsonl", codex((9000, 0, 0, 10), (1000, 0, 0, 10)), codex((500, 0, 0, 5), (500, 0, 0, 5)))
    assert [record.total_input_tokens for record in records] == [1000, 500]


def response(id_, own, **payload):
    return {
        "type": "token_usage_record",
        "timestamp": "2026-09-06T10:00:00Z",
        "payload": {"response_id": id_, "usage": usage(*own), "thread_token_usage": usage(10**6, 0, 0, 9), **payload},
    }


def test_codex_responses_are_told_once_where_sums_repeat_them():
    before = codex((500, 0, 0, 5), (500, 0, 0, 5))  # by a version that wrote the sums alone
    first, first_sum = response("r1", (1000, 0, 900, 10)), codex((1500, 0, 900, 15), (1000, 0, 900, 10))
    compaction = response("rc", (50_000, 40_000, 0, 900))  # no sum has it: https://github.com/openai/codex/issues/47003
    second, second_sum = response("r2", (9000, 950, 0, 20)), codex((10_500, 950, 900, 35), (9000, 950, 0, 20))
    lines = (before, first, first_sum, compaction, first_sum, second, second_sum)
    records = settled("codex.jsonl", {"type": "turn_context", "payload": {"model": "gpt-5.6"}}, *lines)
    assert [(record.id, *counts(record)) for record in records] == [
        (None, 500, 0, 0, 500, 5),
        ("r1", 1000, 0, 900, 100, 10),
        ("rc", 50_000, 40_000, 0, 10_000, 900),
        ("r2", 9000, 950, 0, 8050, 20),
    ]
    assert {record.model for record in records} == {"gpt-5.6"}


def test_a_codex_fork_repeats_sums_without_the_responses_that_told_of_them():
    meta = {"type": "session_meta", "payload": {"id": "parent"}}
    fork = {"type": "session_meta", "payload": {"id": "child", "forked_from_id": "parent"}}
    told = codex((1000, 0, 900, 10), (1000, 0, 900, 10))
    intake = Intake(get_map("codex.jsonl"))
    intake.take([encode(line) for line in (meta, response("r1", (1000, 0, 900, 10)))], 0.0, "parent.jsonl")
    restarted = Intake(get_map("codex.jsonl"))
    restarted.merger.load({name: part for name, part in intake.merger.changes().items() if part is not None})
    restarted.take([encode(told)], 0.0, "parent.jsonl")
    own = response("r2", (2000, 950, 0, 20))
    found = restarted.take([encode(line) for line in (fork, meta, told, own)], 0.0, "child.jsonl")
    assert [item.id for item in found if isinstance(item, UsageRecord)] == ["r2"]


FORK = {"type": "session_meta", "payload": {"id": "child", "forked_from_id": "parent"}}
PARENT = {"type": "session_meta", "payload": {"id": "parent"}}


def told(outcomes):
    return [counts(item)[0] for item in outcomes if isinstance(item, UsageRecord)]


@pytest.mark.parametrize("by", ["sums", "responses"])
def test_a_codex_fork_that_is_read_before_its_parent_waits_for_it(by):
    """Which file is read first is chance: archived forks have names of their own."""
    first, second = (
        codex((1000, 0, 900, 100), (1000, 0, 900, 100)),
        codex((3000, 950, 1000, 300), (2000, 950, 100, 200)),
    )
    own = codex((4000, 1900, 1000, 400), (1000, 950, 0, 100))
    parent = [PARENT, first, second]
    if by == "responses":
        parent = [PARENT, response("r1", (1000, 0, 900, 100)), first, response("r2", (2000, 950, 100, 200)), second]
    intake = Intake(get_map("codex.jsonl"))
    found = intake.take([encode(line) for line in (FORK, PARENT, first, second, own)], 0.0, "archived/child.jsonl")
    assert told(found) == []
    found += intake.take([encode(line) for line in parent], 1.0, "sessions/parent.jsonl")
    assert told(found) == [1000, 2000]
    assert told(intake.settle(11.0)) == [1000]
    later = codex((5000, 2850, 1000, 500), (1000, 950, 0, 100))
    again = intake.take([encode(line) for line in (own, later)], 20.0, "archived/child.jsonl")
    assert told([*again, *intake.settle(40.0)]) == [1000]


def test_a_codex_fork_of_a_fork_repeats_the_first_session():
    first = codex((1000, 0, 900, 100), (1000, 0, 900, 100))
    grandchild = {"type": "session_meta", "payload": {"id": "grandchild", "forked_from_id": "child"}}
    files = {
        "grandchild": (grandchild, FORK, PARENT, first, codex((1700, 0, 900, 160), (700, 0, 0, 60))),
        "child": (FORK, PARENT, first, codex((1500, 0, 900, 150), (500, 0, 0, 50))),
        "parent": (PARENT, first),
    }
    for order in (list(files), list(files)[::-1]):
        intake = Intake(get_map("codex.jsonl"))
        found = [one for name in order for one in intake.take([encode(line) for line in files[name]], 0.0, name)]
        assert sorted(told([*found, *intake.settle(10.0)])) == [500, 700, 1000]


def turn(input_, cached, output):
    return {
        "type": "turn.completed",
        "usage": {"input_tokens": input_, "cached_input_tokens": cached, "output_tokens": output},
    }


def test_codex_exec_tells_the_sums_of_its_thread_with_every_turn():
    def started(name):
        return {"type": "thread.started", "thread_id": name}

    intake = Intake(get_map("codex.jsonl"))
    one = [started("a"), {"type": "turn.started"}, {"type": "item.completed", "item": {"type": "agent_message"}}]
    found = intake.take([encode(line) for line in (*one, turn(1000, 900, 10), turn(3000, 2800, 30))], 0.0, "1.jsonl")
    assert [counts(item) for item in found if isinstance(item, UsageRecord)] == [
        (1000, 900, None, 100, 10),
        (2000, 1900, None, 100, 20),
    ]
    # Another thread in the file, the first one resumed in a file of its own, and a turn that never asked the model.
    found = intake.take([encode(line) for line in (started("b"), turn(5000, 0, 5), turn(0, 0, 0))], 1.0, "1.jsonl")
    assert told(found) == [5000]
    lines = (started("a"), turn(3000, 2800, 30), turn(3400, 3000, 34), {"type": "turn.failed", "error": {}})
    assert told(intake.take([encode(line) for line in lines], 2.0, "2.jsonl")) == [400]


def test_claude_code_lines_without_ids_stay_apart_and_other_events_are_none():
    line = {
        "type": "assistant",
        "message": {"model": "claude-opus-5", "usage": {"input_tokens": 7, "output_tokens": 1}},
    }
    assert len(settled("claude_code.jsonl", line, line, {"type": "summary"}, {"type": "user", "message": {}})) == 2


def test_a_chunk_list_on_one_line_is_one_stream():
    chunks = [
        {"id": "s", "choices": [{"delta": {"content": "hi"}}], "usage": None},
        {"id": "s", "choices": [], "usage": HIT},
    ]
    (record,) = settled("openai.chat.stream", chunks)
    assert counts(record) == INCLUSIVE


def test_details_that_were_logged_as_python_text_are_read():
    details = "PromptTokensDetails(audio_tokens=0, cached_tokens=640)"
    (record,) = settled("openai.chat", {"usage": {**FULL, "prompt_tokens_details": details}})
    assert counts(record) == INCLUSIVE
    (other,) = settled("openai.chat", {"usage": {**FULL, "prompt_tokens_details": "<object at 0x7f>"}})
    assert (counts(other), other.quality) == (UNKNOWN, "cache_unknown")
