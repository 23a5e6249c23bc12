from __future__ import annotations

from support.usage import counts, settled


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


def test_what_a_blocked_prompt_has_no_number_of_is_none_unless_the_total_holds_more():
    # proto3 JSON leaves zeros out
    for total, output in ((10, 0), (None, 0), (30, None)):
        (record,) = settled(
            "google.generate_content", {"usageMetadata": {"promptTokenCount": 10, "totalTokenCount": total}}
        )
        assert (record.output_tokens, record.quality) == (output, "ok")


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
