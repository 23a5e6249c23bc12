from __future__ import annotations

import pytest

from prefix_cache_exporter.usage.maps.book import get_map
from prefix_cache_exporter.usage.record import Duplicate, Skipped
from prefix_cache_exporter.usage.trouble import trouble
from support.usage import outcomes


def chat(**usage):
    return {"usage": {"prompt_tokens": 900, "completion_tokens": 50, **usage}}


HIT = {"prompt_tokens_details": {"cached_tokens": 640}}


@pytest.mark.parametrize(
    ("name", "line", "said"),
    [
        ("openai.chat", chat(**HIT), None),
        ("openai.chat", {"error": {"code": 429}}, None),
        ("openai.chat", {"usage": None}, "a success without token counts at $.usage"),
        ("openai.chat", chat(total_tokens=1), "the total is not input and output"),
        (
            "openai.chat",
            chat(total_tokens=1590, **HIT),
            "the total is not input and output, read as leaving cached tokens out of the input",
        ),
        (
            "bedrock.converse",
            {"usage": {"inputTokens": 900, "cacheReadInputTokens": 640, "outputTokens": 50, "totalTokens": 950}},
            "the total is not input and output, read as counting cached tokens into the input",
        ),
        ("openai.chat", chat(prompt_cache_hit_tokens=9000), "more cached tokens than input"),
        (
            "deepseek.chat",
            chat(prompt_cache_hit_tokens=100, prompt_cache_miss_tokens=5),
            "the uncached tokens are not what reads and writes leave of the input",
        ),
        ("openai.chat", chat(prompt_tokens=-1), "quarantined, a negative number for input at prompt_tokens"),
        ("openai.chat", chat(completion_tokens=0.5), "no whole number for output at completion_tokens"),
        (
            "bedrock.converse",
            {"timestamp": "soon", "usage": {"inputTokens": 1}},
            "no time that can be read at $.timestamp or $.created_at",
        ),
        ("openai.chat", {"usage": {"completion_tokens": 5}}, "no input tokens at prompt_tokens"),
        (
            "anthropic.messages",
            {"usage": {"input_tokens": 1, "output_tokens": 1, "cache_creation": {"ephemeral_5m_input_tokens": "x"}}},
            "no number in ttl_split",
        ),
        (
            "vercel_ai.v5",
            {"usage": {"inputTokens": 9, "cachedInputTokens": 5, "outputTokens": 1}},
            "whether the input includes cached tokens cannot be told: set input_includes_cache for the source",
        ),
        ("openai.chat", "{broken", "lost, got broken JSON at character 2, expected one JSON object"),
        ("openai.chat", "{'usage': 1}", "lost, got a Python dict, expected one JSON object"),
        ("openai.chat", 'INFO {"usage": {}}', "lost, got text before the JSON, expected one JSON object"),
        ("openai.chat", "no JSON at all", "lost, got text, expected one JSON object"),
        ("openai.chat", "[7]", "lost, got a number, expected an object"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_line_is_said_in_words_and_paths_of_the_map(name, line, said):
    (outcome,) = outcomes(name, line)
    assert trouble(outcome, get_map(name)) == said


def test_what_is_no_trouble():
    usage_map = get_map("openai.chat")
    assert trouble(Duplicate(), usage_map) is None
    assert trouble(Skipped("ignored", "blank"), usage_map) is None
    assert trouble(Skipped("lost", "too_long"), usage_map) == "lost, too_long"
