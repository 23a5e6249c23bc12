from __future__ import annotations

from prefix_cache_exporter.usage.intake import Intake
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
