"""Public bug reports about usage numbers, with what is right."""

from __future__ import annotations

import pytest

from prefix_cache_exporter.usage.intake import Intake
from prefix_cache_exporter.usage.maps.book import MapBook
from prefix_cache_exporter.usage.record import Quarantined, UsageRecord
from support.usage import counts, encode, outcomes, settled, sums


def openai(id_, prompt, cached=None, output=5, **more):
    usage = {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}
    return {
        "id": id_,
        "usage": usage if cached is None else {**usage, "prompt_tokens_details": {"cached_tokens": cached}},
        **more,
    }


def test_b15_prompt_tokens_hold_the_cached_ones():
    # https://github.com/vllm-project/vllm/pull/56923
    (record,) = settled("vllm.chat", openai("a", 624, 304))
    assert record.uncached_input_tokens == 320
    assert record.cache_read_tokens / record.total_input_tokens == pytest.approx(0.4872, abs=1e-4)


def test_b16_more_external_than_cached_tokens_is_an_anomaly_and_nothing_else():
    # https://github.com/LMCache/LMCache/issues/2912: 768 - 8448 tokens of local hits
    (record,) = settled("vllm.chat", openai("x1", 17050, 768 - 8448))
    assert (counts(record), record.quality) == ((17050, None, None, None, 5), "anomaly")
    assert record.anomalies == ("read_negative",)


def test_b17_null_or_absent_details_are_not_zero():
    # https://github.com/vllm-project/vllm/issues/44824
    bare = openai("c", 1500)["usage"]
    lines = [
        openai("a", 1000, 0),
        {
            "id": "b",
            "usage": {
                **openai("b", 2006)["usage"],
                "prompt_tokens_details": {"cached_tokens": 1920, "audio_tokens": None},
            },
        },
        {"id": "c", "usage": {**bare, "prompt_tokens_details": None}},
        {"id": "d", "usage": {**bare, "prompt_tokens_details": {}}},
        {"id": "e", "usage": {**openai("e", 2000)["usage"], "prompt_tokens_details": {"cached_tokens": None}}},
        {"id": "f", "usage": None},
    ]
    records = settled("vllm.chat", *lines)
    reported = [record for record in records if record.cache_read_tokens is not None]
    assert len(records) == 6
    assert sum(record.cache_read_tokens for record in reported) == 1920
    assert sum(record.total_input_tokens for record in reported) == 3006
    assert sum(record.total_input_tokens or 0 for record in records) - 3006 == 5000


def test_b18_each_provider_has_its_rule():
    # https://github.com/BerriAI/litellm/issues/9812, https://github.com/crmne/ruby_llm/pull/832
    (one,) = settled("openai.chat", openai("o1", 17903, 17817, 20))
    anthropic = {
        "input_tokens": 3,
        "cache_creation_input_tokens": 12304,
        "cache_read_input_tokens": 0,
        "output_tokens": 550,
    }
    (two,) = settled("anthropic.messages", {"id": "a1", "usage": anthropic})
    bedrock = {
        "inputTokens": 6,
        "outputTokens": 40,
        "cacheReadInputTokens": 9000,
        "cacheWriteInputTokens": 0,
        "totalTokens": 9046,
    }
    (three,) = settled("bedrock.converse", {"usage": bedrock})
    litellm = {
        "prompt_tokens": 98805,
        "completion_tokens": 5120,
        "total_tokens": 103925,
        "cache_read_input_tokens": 66360,
        "cache_creation_input_tokens": 32435,
        "prompt_tokens_details": {"cached_tokens": 66360, "cache_creation_tokens": 32435, "text_tokens": None},
    }
    (four,) = settled("litellm.slp", {"id": "l1", "status": "success", "metadata": {"usage_object": litellm}})
    assert counts(one)[:2] == (17903, 17817)
    assert counts(two)[:3] == (12307, 0, 12304)
    assert counts(three)[:3] == (9006, 9000, 0)
    assert counts(four)[:4] == (98805, 66360, 32435, 10)


def test_b19_start_and_delta_of_a_stream_are_not_added():
    # https://github.com/envoyproxy/ai-gateway/issues/2279
    usage = {"input_tokens": 9, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 2}
    start = {
        "type": "message_start",
        "message": {"id": "msg_1", "model": "claude-x", "usage": {**usage, "output_tokens": 1}},
    }
    delta = {"type": "message_delta", "message_id": "msg_1", "usage": {**usage, "output_tokens": 16}}
    (record,) = settled("anthropic.messages.stream", start, delta)
    assert (counts(record), record.quality) == ((16, 5, 2, 9, 16), "ok")


def test_b21_repeated_lines_are_one_request_across_files_the_last_one_counts():
    # https://github.com/ccusage/ccusage/issues/797
    usage = {"input_tokens": 1, "cache_creation_input_tokens": 2241, "cache_read_input_tokens": 113676}
    bare = {"input_tokens": 7, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1}
    last = {
        "timestamp": "2026-03-02T00:00:03Z",
        "message": {"id": "msg_A", "stop_reason": "end_turn", "usage": {**usage, "output_tokens": 2495}},
    }
    lines = [
        {
            "timestamp": "2026-03-01T23:59:58Z",
            "requestId": "q1",
            "message": {"id": "msg_A", "usage": {**usage, "output_tokens": 1}},
        },
        last,
        {"timestamp": "2026-03-02T00:01:00Z", "message": {"usage": bare}},
        {"timestamp": "2026-03-02T00:01:05Z", "message": {"usage": bare}},
    ]
    intake = Intake(MapBook().get("claude_code.jsonl"))
    found = intake.take([encode(line) for line in lines], 0.0, "s1")
    found += intake.take([encode({**last, "requestId": "q1"})], 1.0, "s2")
    found += intake.settle(400.0)
    found += intake.take([encode({**last, "requestId": "q1"})], 401.0, "s3")
    records = [item for item in found if isinstance(item, UsageRecord)]
    assert len(records) == 3
    total = sums(records)
    assert (total["cache_read_tokens"], total["total_input_tokens"], total["output_tokens"]) == (113676, 115932, 2497)
    assert min(record.time for record in records) == 1772409598.0  # the first line's


def test_b22_gemini_repeats_sums_on_every_chunk():
    # https://github.com/langchain-ai/langchainjs/pull/10164
    def chunk(candidates):
        usage = {"promptTokenCount": 5000, "cachedContentTokenCount": 4000, "candidatesTokenCount": candidates}
        return {"responseId": "g1", "usageMetadata": {**usage, "totalTokenCount": 5000 + candidates}}

    (record,) = settled("google.generate_content.stream", chunk(4), chunk(8), chunk(12))
    assert counts(record) == (5000, 4000, None, 1000, 12)


@pytest.mark.parametrize("name", ["openai.chat", "deepseek.chat"])
def test_b24_deepseeks_miss_is_no_write_and_its_hit_counts_once(name):
    # https://github.com/NousResearch/hermes-agent/issues/61871
    usage = openai("d1", 1015, output=7)["usage"]
    (native,) = settled(
        name, {"id": "d1", "usage": {**usage, "prompt_cache_hit_tokens": 100, "prompt_cache_miss_tokens": 915}}
    )
    assert counts(native) == (1015, 100, None, 915, 7)
    usage = openai("d2", 10499, 10496, 56)["usage"]
    (both,) = settled(
        name, {"id": "d2", "usage": {**usage, "prompt_cache_hit_tokens": 10496, "prompt_cache_miss_tokens": 3}}
    )
    assert counts(both) == (10499, 10496, None, 3, 56)
    (miss,) = settled(name, {"id": "d3", "usage": {**openai("d3", 1015)["usage"], "prompt_cache_miss_tokens": 915}})
    assert counts(miss) == (1015, 100, None, 915, 5)


def test_b25_writes_keep_their_time_to_live():
    # https://github.com/earendil-works/pi/issues/5737
    def line(id_, written, split):
        usage = {
            "input_tokens": 4,
            "cache_creation_input_tokens": written,
            "cache_read_input_tokens": 0,
            "output_tokens": 1,
        }
        return {"id": id_, "usage": {**usage, "cache_creation": split}}

    records = settled(
        "anthropic.messages",
        line("t1", 1000, {"ephemeral_5m_input_tokens": 600, "ephemeral_1h_input_tokens": 400}),
        line("t2", 500, None),
        line("t3", 800, {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 900}),
        line("t4", 0, {"ephemeral_5m_input_tokens": 5}),
    )
    assert [record.cache_write_by_ttl for record in records] == [{"5m": 600, "1h": 400}, {"unknown": 500}, {}, {}]
    assert [record.cache_write_tokens for record in records] == [1000, 500, 800, 0]
    assert [record.anomalies for record in records] == [(), (), ("ttl_split_mismatch",), ("ttl_split_mismatch",)]


def test_b27_usage_in_two_stages_and_a_client_that_went_away():
    # https://github.com/can1357/oh-my-pi/issues/5022
    full = openai("s1", 35227, output=50)["usage"]
    lines = [
        {"id": "s1", "choices": [{"finish_reason": "stop"}], "usage": full},
        {"id": "s1", "choices": [], "usage": {**full, "prompt_tokens_details": {"cached_tokens": 32512}}},
        *(
            {"id": "s2", "choices": [{"finish_reason": None}], "usage": openai("s2", 900, output=n)["usage"]}
            for n in (1, 2, 3)
        ),
    ]
    one, two = settled("vllm.chat.stream", *lines)
    assert counts(one)[:2] == (35227, 32512)
    assert (counts(two), two.quality, two.status) == ((900, None, None, None, 3), "cache_unknown", "incomplete")


def test_b28_attempts_doubled_rows_and_empty_ids(tmp_path):
    # https://github.com/BerriAI/litellm/issues/39455, …/15740, …/6633
    (tmp_path / "rows.yaml").write_text(
        "format: our.rows\nusage_from: openai.chat\nat: $\nid: $.request_id\nidentity: id_and_status\n"
    )

    def row(id_, status, prompt=None, cached=None, output=5, **more):
        usage = None if prompt is None else openai("", prompt, cached, output)["usage"]
        return {"request_id": id_, "status": status, "usage": usage, **more}

    rows = [
        row("k1-a", "failure", trace="op1"),
        row("k1-b", "failure", 0, output=0, trace="op1"),
        row("k1-c", "success", 1000, 800, trace="op1"),
        row("k1-c", "success", 1000, 800, trace="op1"),
        row("", "success", 500, 100),
        row("", "success", 500, 100),
        row("k2", "success", 300, 0, 35, partial=True),
        row("k2", "failure", error="client disconnected"),
    ]
    intake = Intake(MapBook([tmp_path]).get("our.rows"))
    records = [item for item in intake.take([encode(line) for line in rows], 0.0) if isinstance(item, UsageRecord)]
    good = [record for record in records if record.status == "success"]
    assert (len(good), len(records) - len(good)) == (4, 3)
    assert (sums(good)["total_input_tokens"], sums(good)["cache_read_tokens"]) == (2300, 1000)
    assert {record.quality for record in records if record.status == "failed"} == {"usage_missing"}


def test_b29_a_bad_time_does_not_drop_the_row_and_a_time_without_zone_is_utc():
    # https://github.com/logtide-dev/logtide/pull/282
    times = [
        "2026-03-02T11:59:59Z",
        "2026-03-01T09:00:00Z",
        "2026-03-02T20:00:00+00:00",
        "2026-03-02T19:59:00+08:00",
        "not-a-time",
        "2026-03-02 11:59:59",
    ]
    records = settled("vllm.chat", *(openai(f"z{n}", 10, 0, timestamp=time) for n, time in enumerate(times)))
    assert len(records) == 6
    assert [record.time for record in records] == [
        1772452799.0,
        1772355600.0,
        1772481600.0,
        1772452740.0,
        None,
        1772452799.0,
    ]
    assert [record.anomalies for record in records][4] == ("bad_time",)


def test_an_input_that_is_no_count_is_quarantined_and_in_no_sum():
    for bad, reason in (
        (-1, "negative"),
        (True, "not_a_number"),
        (1.5, "not_whole"),
        (2**60, "too_large"),
        ([], "not_a_number"),
    ):
        (outcome,) = outcomes(
            "vllm.chat", {"usage": {"prompt_tokens": bad, "completion_tokens": 1, "note": "text"}}, keep_raw=True
        )
        assert isinstance(outcome, Quarantined)
        assert outcome.reason == f"input_{reason}"
        assert "note" not in (outcome.usage or {})
    (kept,) = outcomes(
        "vllm.chat",
        {"usage": {"prompt_tokens": -1, "prompt_tokens_details": {"cached_tokens": 1, "s": "x", "n": 1}, "n": 1}},
        keep_raw=True,
    )
    assert kept.usage == {"prompt_tokens": -1, "prompt_tokens_details": {"cached_tokens": 1}}
