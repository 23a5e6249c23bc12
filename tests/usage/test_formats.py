"""One line or stream of every kind, its numbers beside it: total, read, write, uncached, output."""

from __future__ import annotations

import json

import pytest

from prefix_cache_exporter.documents import data_root
from prefix_cache_exporter.usage.maps.book import shipped_maps
from prefix_cache_exporter.usage.maps.files import read_map
from support.usage import ANTHROPIC, EXCLUSIVE, FULL, HIT, INCLUSIVE, RESPONSES, UNKNOWN, counts, settled

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
