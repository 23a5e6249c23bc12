from __future__ import annotations

import pytest

from prefix_cache_exporter.usage.intake import Intake
from prefix_cache_exporter.usage.maps.book import get_map
from support.usage import counts, encode
from support.usage_maps import book


def test_a_map_for_an_in_house_log(tmp_path):
    text = """\
format: house.log
provider: {default: house, from: $.vendor, names: {a*: anthropic}}
usage: $.tokens
id: $.id
tokens: {input: in, output: out, read: hit, write: put}
additive: {rule: exclusive}
skip: [{path: $.kind, any_of: [debug], reason: debug}]
"""
    intake = Intake(book(tmp_path, text).get("house.log"))
    line = {"id": 7, "vendor": "A-one", "tokens": {"in": 5, "out": 2, "hit": 90, "put": 5}}
    (record, skipped) = intake.take([encode(line), encode({"kind": "debug"})], 0.0)
    assert (counts(record), record.provider, record.id) == ((100, 90, 5, 5, 2), "anthropic", "7")
    assert (skipped.kind, skipped.reason) == ("ignored", "debug")


@pytest.mark.parametrize(
    ("name", "model", "tokens"),
    [
        ("openai.chat", "gpt-5.6-sol", 1024),
        ("openai.chat", "llama", None),
        ("openai.chat", None, None),
        ("anthropic.messages", "claude-opus-5", 512),
        ("anthropic.messages", "claude-haiku-4-5-20251001", 4096),
        ("anthropic.messages", "claude-opus-4-7", 2048),
        ("bedrock.converse", "anthropic.claude-sonnet-4-5-20250929-v1:0", 1024),
        ("google.generate_content", "gemini-2.5-pro", 4096),
        ("vllm.chat", "gpt-oss", None),
    ],
)
def test_the_shortest_prefix_that_a_provider_caches(name, model, tokens):
    found = get_map(name).minimum_for(model)
    assert (found.tokens if found else None) == tokens
    assert found is None or (found.as_of and found.source)


def test_a_minimum_without_a_model_holds_for_all(tmp_path):
    text = "format: a.b\nextends: openai.chat\nminimum: [{tokens: 64, as_of: '2026-01-01', source: x}]\n"
    assert book(tmp_path, text).get("a.b").minimum_for(None).tokens == 64


def test_words_of_a_map_are_compared_as_people_mean_them(tmp_path):
    text = """\
format: house.log
provider: {from: $.vendor, names: {OurVLLM: vllm}}
usage: $
id: $.id
tokens: {input: in, output: out, read: hit}
status: {rules: [{path: $.code, values: {200: success, 500: failed}}, {path: $.ok, values: {false: failed}}]}
"""
    intake = Intake(book(tmp_path, text).get("house.log"))
    numbers = {"in": 5, "out": 1, "hit": 2}
    lines = [
        {"vendor": "OURvllm", "code": 200, **numbers},
        {"vendor": "x", "code": "500", **numbers},
        {"ok": False, **numbers},
    ]
    found = intake.take([encode(line) for line in lines], 0.0)
    assert [(one.provider, one.status) for one in found] == [
        ("vllm", "success"),
        ("x", "failed"),
        ("unknown", "failed"),
    ]
