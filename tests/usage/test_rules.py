from __future__ import annotations

import pytest

from prefix_cache_exporter.usage.rules import by_ttl
from support.usage import counts, settled


def chat(prompt, cached, total, output=50, *, written=None, reasoning=None, provider=None):
    usage = {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": total}
    details = {"cached_tokens": cached, "cache_write_tokens": written}
    usage["prompt_tokens_details"] = details
    if reasoning is not None:
        usage["completion_tokens_details"] = {"reasoning_tokens": reasoning}
    return {"usage": usage, **({"provider": provider} if provider else {})}


@pytest.mark.parametrize(
    ("line", "expected", "quality", "anomalies"),
    [
        # the total agrees with the rule
        (chat(1000, 600, 1050), (1000, 600, None, 400, 50), "ok", ()),
        (chat(1000, 1000, 1050), (1000, 1000, None, 0, 50), "ok", ()),
        (chat(1000, 600, None), (1000, 600, None, 400, 50), "ok", ()),
        # it agrees with the other rule alone
        (chat(1000, 600, 1650), (1600, 600, None, 1000, 50), "derived", ("sum_ne_total",)),
        (chat(100, 600, 750), (700, 600, None, 100, 50), "derived", ("cache_gt_input",)),
        # it agrees with neither
        (chat(1000, 600, 9999), (1000, 600, None, 400, 50), "anomaly", ("sum_ne_total",)),
        (chat(1000, None, 9999), (1000, None, None, None, 50), "anomaly", ("sum_ne_total",)),
        # more cached than input: a provider contradicts itself, a gateway leaves the cached tokens out
        (chat(100, 600, 150), (100, None, None, None, 50), "anomaly", ("cache_gt_input",)),
        (chat(100, 600, None), (100, None, None, None, 50), "anomaly", ("cache_gt_input",)),
        (chat(100, 600, 150, provider="X"), (700, 600, None, 100, 50), "derived", ("cache_gt_input",)),
        (chat(100, 60, 150, written=50), (100, None, None, None, 50), "anomaly", ("cache_gt_input",)),
        # reasoning beside the output, inside it, and unknown
        (chat(1000, 0, 1080, reasoning=30), (1000, 0, None, 1000, 80), "ok", ()),
        (chat(1000, 0, 1050, reasoning=30), (1000, 0, None, 1000, 50), "ok", ()),
        (chat(1000, 0, None, reasoning=30), (1000, 0, None, 1000, 50), "ok", ()),
    ],
)
def test_an_inclusive_input_and_the_reported_total(line, expected, quality, anomalies):
    (record,) = settled("openai.chat", line)
    assert (counts(record), record.quality, record.anomalies) == (expected, quality, anomalies)


def converse(input_, cached, total, output=50):
    return {
        "usage": {"inputTokens": input_, "cacheReadInputTokens": cached, "outputTokens": output, "totalTokens": total}
    }


@pytest.mark.parametrize(
    ("line", "expected", "quality", "anomalies"),
    [
        (converse(100, 600, 750), (700, 600, None, 100, 50), "ok", ()),
        (converse(100, 600, None), (700, 600, None, 100, 50), "ok", ()),
        (converse(1000, 600, 1050), (1000, 600, None, 400, 50), "derived", ("sum_ne_total",)),
        (converse(100, 600, 150), (700, 600, None, 100, 50), "anomaly", ("sum_ne_total",)),
        (converse(100, 600, 9), (700, 600, None, 100, 50), "anomaly", ("sum_ne_total",)),
    ],
)
def test_an_exclusive_input_and_the_reported_total(line, expected, quality, anomalies):
    (record,) = settled("bedrock.converse", line)
    assert (counts(record), record.quality, record.anomalies) == (expected, quality, anomalies)


@pytest.mark.parametrize(
    ("name", "line", "includes", "expected", "quality"),
    [
        ("openai.chat", chat(100, 600, 150), False, (700, 600, None, 100, 50), "override"),
        ("openai.chat", chat(1000, 600, 1650), True, (1000, 600, None, 400, 50), "override"),
        ("openai.chat", chat(100, 600, 150), True, (100, None, None, None, 50), "anomaly"),
        ("openai.chat", chat(100, None, 150), True, (100, None, None, None, 50), "cache_unknown"),
        # without the cached tokens the input is not the whole prompt
        ("openai.chat", chat(100, None, 150), False, (None, None, None, 100, 50), "cache_unknown"),
        (
            "langfuse.usage_details",
            {"usageDetails": {"input": 9, "input_cached_tokens": 5}},
            False,
            (14, 5, None, 9, None),
            "override",
        ),
        ("bedrock.converse", converse(100, 600, 750), True, (100, None, None, None, 50), "anomaly"),
    ],
)
def test_the_operators_word_decides(name, line, includes, expected, quality):
    (record,) = settled(name, line, includes=includes)
    assert (counts(record), record.quality) == (expected, quality)


def test_tool_use_is_input_beside_the_prompt_unless_the_total_says_otherwise():
    usage = {"promptTokenCount": 100, "candidatesTokenCount": 10, "toolUsePromptTokenCount": 7, "thoughtsTokenCount": 5}
    for total, expected in ((122, (107, 15)), (115, (100, 15)), (117, (107, 10)), (110, (100, 10)), (None, (107, 15))):
        (record,) = settled("google.generate_content", {"usageMetadata": {**usage, "totalTokenCount": total}})
        assert (record.total_input_tokens, record.output_tokens) == expected
    (thoughts,) = settled(
        "google.generate_content", {"usageMetadata": {"promptTokenCount": 5, "thoughtsTokenCount": 3}}
    )
    assert (thoughts.output_tokens, thoughts.cache_read_tokens) == (3, 0)
    (cut,) = settled("google.generate_content", {"usageMetadata": {"candidatesTokenCount": 5, "thoughtsTokenCount": 3}})
    assert (counts(cut), cut.quality) == ((None, None, None, None, 8), "partial")


@pytest.mark.parametrize(
    ("write", "split", "expected"),
    [
        (None, None, ({}, False)),
        (0, None, ({}, False)),
        (0, {"5m": 0}, ({}, False)),
        (0, {"5m": 1}, ({}, True)),
        (10, None, ({"unknown": 10}, False)),
        (10, {"5m": 10, "1h": 0}, ({"5m": 10}, False)),
        (10, {"5m": 4}, ({"5m": 4, "unknown": 6}, False)),
        (10, {"unknown": 4}, ({"unknown": 10}, False)),
        (10, {"5m": 11}, ({}, True)),
    ],
)
def test_writes_by_time_to_live(write, split, expected):
    assert by_ttl(write, split) == expected


def test_writes_are_the_sum_of_their_parts_where_nothing_else_says():
    details = {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 4, "cache_creation": 0}
    (record,) = settled(
        "langchain.usage_metadata", {"usage_metadata": {"input_tokens": 50, "input_token_details": details}}
    )
    assert (record.cache_write_tokens, record.cache_write_by_ttl) == (7, {"5m": 3, "1h": 4})
    zero = {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0, "cache_creation": 9}
    (other,) = settled(
        "langchain.usage_metadata", {"usage_metadata": {"input_tokens": 50, "input_token_details": zero}}
    )
    assert other.cache_write_tokens == 9


def test_reasoning_that_is_no_count_matters_only_where_it_is_beside_the_output():
    usage = {"prompt_tokens": 9, "completion_tokens": 1, "completion_tokens_details": {"reasoning_tokens": -1}}
    (inside,) = settled("vllm.chat", {"usage": usage})
    (outside,) = settled("xai.chat", {"usage": usage})
    assert inside.anomalies == ()
    assert outside.anomalies == ("reasoning_negative",)


def iterations(*parts, **usage):
    numbers = {"input_tokens": 10, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0, "output_tokens": 1}
    return {"usage": {**numbers, "iterations": list(parts), **usage}}


def test_a_part_whose_numbers_are_none_is_not_added_and_not_passed_over():
    whole = {"type": "compaction", "input_tokens": 90, "cache_read_input_tokens": 5, "output_tokens": 2}
    (record,) = settled("anthropic.messages", iterations(whole, {"type": "compaction", "cache_read_input_tokens": 7}))
    assert (counts(record), record.quality, record.anomalies) == (
        (105, 5, 0, 100, 3),
        "anomaly",
        ("part_incomplete",),
    )
    (record,) = settled("anthropic.messages", iterations({"type": "compaction", "input_tokens": -1}))
    assert (counts(record), record.anomalies) == ((10, 0, 0, 10, 1), ("part_negative", "part_incomplete"))
    (record,) = settled("anthropic.messages", iterations(*[whole] * 100))
    assert counts(record) == (9510, 500, 0, 9010, 201)  # however many there are


def test_hits_and_misses_make_a_prompt_where_nothing_else_says_how_long_it_was():
    (record,) = settled("deepseek.chat", {"usage": {"prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 36}})
    assert (counts(record), record.quality) == ((100, 64, None, 36, None), "derived")


def test_what_is_called_uncached_must_be_what_is_left():
    usage = {"inputTokens": 900, "outputTokens": 5, "totalTokens": 905}
    details = {"cacheReadTokens": 640, "cacheWriteTokens": 60, "noCacheTokens": 200}
    (right,) = settled("vercel_ai.v6", {"usage": {**usage, "inputTokenDetails": details}})
    (with_writes,) = settled(
        "vercel_ai.v6", {"usage": {**usage, "inputTokenDetails": {**details, "noCacheTokens": 260}}}
    )
    (wrong,) = settled("vercel_ai.v6", {"usage": {**usage, "inputTokenDetails": {**details, "noCacheTokens": 900}}})
    assert {counts(one) for one in (right, with_writes, wrong)} == {(900, 640, 60, 200, 5)}
    assert [one.anomalies for one in (right, with_writes, wrong)] == [(), (), ("uncached_mismatch",)]
