from __future__ import annotations

import json

import pytest

from prefix_cache_exporter.usage.intake import Intake
from prefix_cache_exporter.usage.maps.book import get_map
from prefix_cache_exporter.usage.normaliser import Normaliser
from prefix_cache_exporter.usage.paths import PathError
from prefix_cache_exporter.usage.record import Skipped, UsageRecord
from support.usage import counts, encode, outcomes, settled
from support.usage_maps import book

USAGE = {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11, "prompt_tokens_details": {"cached_tokens": 4}}
LINE = {"id": "a", "model": "m", "usage": USAGE, "metadata": {"template": "t", "tenant": "acme", "n": 3, "empty": ""}}


@pytest.mark.parametrize(
    ("line", "kind", "reason"),
    [
        (b"", "ignored", "blank"),
        (b"  \r", "ignored", "blank"),
        (b"event: message_start", "ignored", "event_stream_framing"),
        (b": keep-alive", "ignored", "event_stream_framing"),
        (b"data: [DONE]", "ignored", "event_stream_framing"),
        (b"data:", "ignored", "event_stream_framing"),
        (b"plain text", "lost", "not_json"),
        (b'{"cut": ', "lost", "not_json"),
        (b"\x00\x00", "lost", "not_json"),
        (b"42", "lost", "not_an_object"),
        (b'["x"]', "lost", "not_an_object"),
    ],
)
def test_lines_that_give_no_record_say_why(line, kind, reason):
    (skipped,) = Normaliser(get_map("openai.chat")).feed(line)
    assert (skipped.kind, skipped.reason) == (kind, reason)


def test_what_only_lenient_readers_take_is_read():
    for line in (
        b'data: {"usage": {"prompt_tokens": 10, "completion_tokens": 1}}',
        b'{"cost": NaN, "usage": {"prompt_tokens": 10, "completion_tokens": 1}}',
        b'{"text": "\\ud800", "usage": {"prompt_tokens": 10, "completion_tokens": 1}}',
        b'{"text": "\xff", "usage": {"prompt_tokens": 10, "completion_tokens": 1}}',
    ):
        (record,) = Intake(get_map("openai.chat")).take([line], 0.0)
        assert (record.total_input_tokens, record.output_tokens) == (10, 1)
    (odd,) = settled("openai.chat", '{"id": "\\ud800", "usage": {"prompt_tokens": 1, "completion_tokens": 1}}')
    assert odd.id == "&#55296;"  # neither lost nor anything that metrics, state or a terminal choke on


def test_a_line_that_is_a_list_holds_several_records():
    found = settled("openai.chat", [LINE, {**LINE, "id": "b"}])
    assert [record.id for record in found] == ["a", "b"]


@pytest.mark.parametrize("usage", [USAGE, {**USAGE, "prompt_tokens": "10"}])
def test_what_the_configuration_asks_for_comes_along(usage):
    """The first line is plain and takes the fast lane, the second does not."""
    seen = []

    def protect(found):
        seen.append(dict(found))
        return {name: value for name, value in found.items() if name != "tenant"}

    fields = {
        "template": "$.metadata.template",
        "tenant": "$.metadata.tenant",
        "n": "$.metadata.n",
        "e": "$.metadata.empty",
    }
    (record,) = settled(
        "openai.chat",
        {**LINE, "usage": usage},
        fields=fields,
        protect=protect,
        provider="house",
        models={"m": "model-m"},
    )
    assert record.extra == {"template": "t", "n": "3"}
    assert seen == [{"template": "t", "tenant": "acme", "n": "3"}]
    assert (record.provider, record.model, counts(record)) == ("house", "model-m", (10, 4, None, 6, 1))


def test_a_path_that_is_none_is_refused_at_the_start():
    with pytest.raises(PathError):
        Normaliser(get_map("openai.chat"), fields={"x": "$.."})


def test_ids_are_known_by_hashes_and_a_key_changes_them():
    plain, keyed = Normaliser(get_map("openai.chat")), Normaliser(get_map("openai.chat"), hash_key=b"k")
    (one,), (other,) = plain.feed(encode(LINE)), keyed.feed(encode(LINE))
    assert one.key != other.key
    assert len(one.key) == len(other.key) == 12
    assert one.key != b"a"


def test_repeats_are_found_whichever_way_a_line_takes():
    odd = {**LINE, "usage": {**USAGE, "prompt_tokens": "10"}}
    found = outcomes("openai.chat", LINE, odd, LINE, {**odd, "id": "b"}, {**LINE, "id": "b"})
    assert [isinstance(item, UsageRecord) for item in found] == [True, False, False, True, False]
    row = {"id": "x", "metadata": {"usage_object": USAGE}}
    found = outcomes("litellm.slp", row, {**row, "status": "success"}, {**row, "status": "failure"}, row)
    assert [isinstance(item, UsageRecord) for item in found] == [True, False, True, False]


def test_decoded_items_go_the_same_way():
    normaliser = Normaliser(get_map("openai.chat"))
    assert normaliser.feed_decoded(LINE) == normaliser.feed(encode(LINE)) != ()


def test_gathering_a_format_without_plain_lines_gives_outcomes():
    groups, found = Intake(get_map("vllm.chat.stream")).gather([encode(LINE), b"x"], 0.0)
    assert groups == []
    assert found == [Skipped("lost", "not_json", "got text, expected one JSON object")]


def test_gathered_lines_with_and_without_cache_numbers_are_groups_of_their_own():
    """Together they would all count as silent about the cache, or none of them, as the first one did."""
    silent = {"model": "m", "usage": {"input_tokens": 5, "output_tokens": 1}}
    telling = {"model": "m", "usage": {**silent["usage"], "cache_read_input_tokens": 10}}
    groups, _ = Intake(get_map("anthropic.messages")).gather(
        [encode({**line, "id": str(number)}) for number, line in enumerate((telling, silent, telling, silent))], 0.0
    )
    assert [[row[:4] for row in group.rows] for group in groups] == [[(15, 10, None, 5)] * 2, [(5, None, None, 5)] * 2]


def test_gathered_lines_share_what_they_have_in_common():
    intake = Intake(get_map("openai.chat"), fields={"template": "$.metadata.template"})
    lines = [encode({**LINE, "id": str(number)}) for number in range(3)]
    groups, found = intake.gather([*lines, lines[0], b"x"], 0.0)
    (group,) = groups
    assert group.sample.extra == {"template": "t"}
    assert [row[:5] for row in group.rows] == [(10, 4, None, 6, 1)] * 3
    assert len(found) == 2
    assert intake.lane is not None


def test_a_provider_is_remembered_only_so_many_times():
    intake = Intake(get_map("openai.chat"))
    for number in range(1100):
        (record,) = intake.take([encode({"provider": f"P{number}", "usage": USAGE})], 0.0)
        assert record.provider == f"p{number}"


def test_names_of_providers_by_pattern_and_otherwise_as_they_are():
    found = settled(
        "vercel_ai.v6",
        *({"provider": name, "usage": {"inputTokens": 1}} for name in ("anthropic.messages", "Own", 5, None)),
    )
    assert [record.provider for record in found] == ["anthropic", "own", "5", "unknown"]


def test_compactions_and_advisors_are_parts_with_prices_of_their_own():
    usage = {"input_tokens": 10, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 2, "output_tokens": 3}
    part = {**usage, "type": "compaction", "model": "claude-small", "cache_creation": {"ephemeral_1h_input_tokens": 2}}
    advice = {"type": "advisor_message", "model": "claude-wise", "input_tokens": 100, "output_tokens": 7}
    top = {**usage, "iterations": [part, {**usage, "type": "message"}, advice, "x"]}
    (record,) = settled("anthropic.messages", {"model": "claude-large", "usage": top})
    assert counts(record) == (134, 10, 4, 120, 13)
    assert record.cache_write_by_ttl == {"unknown": 2, "1h": 2}
    assert [(item.model, item.total_input_tokens) for item in record.components] == [
        ("claude-large", 17),
        ("claude-small", 17),
        ("claude-wise", 100),
    ]
    assert record.anomalies == ()
    (plain,) = settled("anthropic.messages", {"usage": {**usage, "iterations": [{"type": "message"}]}})
    assert plain.components == ()
    (empty,) = settled("anthropic.messages", {"usage": {**usage, "iterations": [{"type": "compaction"}]}})
    assert counts(empty) == (17, 5, 2, 10, 3)


def test_parts_of_which_nobody_says_whether_they_are_counted_are_noted(tmp_path):
    parts = "{at: [iterations], kind: type, add: [compaction], unclear: [advisor_message]}"
    own = f"format: own\nextends: anthropic.messages\nparts: {parts}\n"
    usage = {"input_tokens": 10, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 2, "output_tokens": 3}
    line = {"usage": {**usage, "iterations": [{**usage, "type": "advisor_message"}]}}
    (unclear,) = Intake(book(tmp_path, own).get("own")).take([encode(line)], 0.0)
    assert (unclear.anomalies, counts(unclear)) == (("part_unclear",), (17, 5, 2, 10, 3))


def test_bad_times_to_live_and_outputs_are_anomalies():
    usage = {"input_tokens": 10, "cache_creation_input_tokens": 2, "output_tokens": 3}
    (split,) = settled("anthropic.messages", {"usage": {**usage, "cache_creation": {"ephemeral_1h_input_tokens": -2}}})
    assert (split.quality, split.anomalies, split.cache_write_by_ttl) == (
        "anomaly",
        ("ttl_split_negative",),
        {"unknown": 2},
    )
    (output,) = settled("anthropic.messages", {"usage": {**usage, "output_tokens": "many"}})
    assert (output.quality, output.anomalies, output.output_tokens) == ("anomaly", ("output_not_a_number",), None)
    (listed,) = settled(
        "bedrock.converse",
        {
            "usage": {
                "inputTokens": 1,
                "cacheWriteInputTokens": 9,
                "outputTokens": 1,
                "cacheDetails": [{"ttl": "5m", "inputTokens": 4}, {"ttl": "7d", "inputTokens": 2}, {"ttl": "1h"}, 3],
            }
        },
    )
    assert listed.cache_write_by_ttl == {"5m": 4, "unknown": 5}


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("openai.org_usage", '{"data": []}'),
        ("openai.org_usage", '{"data": [{"start_time": 1, "results": []}]}'),
        ("cloudflare.aig_log", '{"result": [], "success": true}'),
        ("otel.span", '{"resourceSpans": [{"scopeSpans": []}]}'),
    ],
)
def test_a_page_with_nothing_in_it_holds_no_request(name, line):
    assert Intake(get_map(name)).take([line.encode()], 0.0) == []


def test_a_byte_order_mark_within_a_log_is_no_part_of_its_line():
    (record,) = Intake(get_map("openai.chat")).take([b'\xef\xbb\xbf{"usage": {"prompt_tokens": 5}}'], 0.0)
    assert record.total_input_tokens == 5


def test_values_behind_one_another_on_a_line_are_each_read():
    usage = {"prompt_tokens": 5, "completion_tokens": 1}
    one, two = (json.dumps({"id": name, "usage": usage}) for name in "ab")
    for line in (one + two, f"{one}, {two},", f"{one} \t{two}"):
        assert [record.id for record in settled("openai.chat", line)] == ["a", "b"]
    assert outcomes("openai.chat", one + "rest")[0].reason == "not_json"


def test_lines_are_taken_out_of_dockers_own():
    inner = json.dumps({"id": "a", "usage": {"prompt_tokens": 5, "completion_tokens": 1}})
    (record,) = settled("openai.chat", {"log": inner + "\n", "stream": "stdout", "time": "2026-03-02T19:59:00Z"})
    assert (record.id, record.total_input_tokens) == ("a", 5)
    (lost,) = outcomes("openai.chat", {"log": "started\n", "stream": "stderr", "time": "2026-03-02T19:59:00Z"})
    assert (lost.reason, lost.detail) == ("not_json", "got text, expected one JSON object")
    chunk = {"log": f"data: {inner}\n", "stream": "stdout", "time": "2026-03-02T19:59:00Z"}
    (record,) = settled("openai.chat", chunk)
    assert record.total_input_tokens == 5
    (own,) = settled("openai.chat", {"log": "x", "stream": True, "usage": {"prompt_tokens": 5}})
    assert own.total_input_tokens == 5
