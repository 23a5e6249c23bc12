"""A source whose configuration has changed since it wrote its state."""

from __future__ import annotations

import json

import pytest

from support.usage_source import Source

CHAT = "openai.chat.stream"
MESSAGES = "anthropic.messages.stream"
CHUNK = {
    "id": "c1",
    "choices": [{"finish_reason": None}],
    "usage": {"prompt_tokens": 1000, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 400}},
}
START = {
    "type": "message_start",
    "message": {"id": "m1", "usage": {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 1}},
}


@pytest.mark.parametrize(
    ("line", "before", "after", "tokens"),
    [(CHUNK, CHAT, MESSAGES, (1000, 400)), (START, MESSAGES, CHAT, (100, 90))],
    ids=["inclusive", "exclusive"],
)
def test_what_was_open_under_another_format_is_read_by_the_rule_of_that_one(tmp_path, line, before, after, tokens):
    source = Source(tmp_path, json.dumps(line) + "\n", format=before)
    source.poll()
    assert source.total("open_records") == 1
    source.options["format"] = after
    source.kill()
    source.poll()
    assert source.total("open_records") == 0
    assert (source.total("prompt_tokens"), source.total("cached_prompt_tokens")) == tokens
    assert source.series("anomalies") == {}
    source.kill()
    source.poll(1000)
    assert source.total("requests") == 1


def test_what_was_open_under_a_format_that_nobody_knows_any_more_is_quarantined(tmp_path):
    source = Source(tmp_path, json.dumps(CHUNK) + "\n", format=CHAT)
    source.poll()
    source.options["format"], source.find = MESSAGES, lambda _: None
    source.kill()
    source.poll(1000)
    assert source.series("quarantined_records") == {("format_gone",): 1}
    assert source.total("requests") is None


def test_what_is_open_stays_open_where_the_format_is_the_same(tmp_path):
    source = Source(tmp_path, json.dumps(CHUNK) + "\n", format=CHAT)
    source.poll()
    source.options["fields"] = {"template": "$.t"}
    source.kill()
    source.append(json.dumps({"id": "c1", "choices": [{"finish_reason": "stop"}]}) + "\n")
    source.poll()
    source.poll(1000)
    assert (source.total("requests", status="success"), source.total("prompt_tokens")) == (1, 1000)


def test_repeats_of_what_was_settled_by_the_change_are_repeats(tmp_path):
    source = Source(tmp_path, json.dumps(CHUNK) + "\n", format=CHAT)
    source.poll()
    source.options["format"] = "vllm.chat.stream"
    source.kill()
    source.append(json.dumps(CHUNK) + "\n")
    source.poll()
    source.poll(1000)
    assert (source.total("requests"), source.total("duplicate_records")) == (1, 1)
