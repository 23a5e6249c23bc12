from __future__ import annotations

import re
from pathlib import Path

import pytest

from prefix_cache_exporter.documents import DocumentError
from prefix_cache_exporter.usage.intake import Intake
from prefix_cache_exporter.usage.maps import MapBook, UnknownFormatError, get_map
from support.usage import counts, encode

OURS = """\
format: shop.llm
usage_from: openai.chat
at: $.response.body
id: $.request_id
time: $.ts
model: $.response.body.model
status:
  rules:
    - {path: $.response.code, at_least: 400, is: failed}
"""
LINE = {
    "ts": 1790000000.5,
    "request_id": "r1",
    "response": {
        "code": 200,
        "body": {
            "id": "chatcmpl-1",
            "model": "gpt-4o",
            "usage": {
                "prompt_tokens": 10,
                "completion_tokens": 1,
                "total_tokens": 11,
                "prompt_tokens_details": {"cached_tokens": 4},
            },
        },
    },
}


def book(tmp_path, *texts):
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.yaml").write_text(text)
    return MapBook([tmp_path])


def test_a_known_object_in_an_envelope_takes_ten_lines(tmp_path):
    (record,) = Intake(book(tmp_path, OURS).get("shop.llm")).take([encode(LINE)], 0.0)
    assert counts(record) == (10, 4, None, 6, 1)
    assert (record.id, record.time, record.model, record.format) == ("r1", 1790000000.5, "gpt-4o", "shop.llm")
    assert len(OURS.splitlines()) <= 10


def test_what_the_map_does_not_say_comes_from_the_known_format_at_its_new_place(tmp_path):
    bare = "format: shop.llm\nusage_from: openai.chat\nat: $.response.body\n"
    (record,) = Intake(book(tmp_path, bare).get("shop.llm")).take([encode(LINE)], 0.0)
    assert record.id == "chatcmpl-1"


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


def test_maps_extend_one_another_and_files_stand_beside_folders(tmp_path):
    one = "format: house.base\nextends: vllm.chat\nprovider: house\n"
    two = tmp_path / "two.yml"
    two.write_text("format: house.more\nextends: house.base\ntitle: more\n")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "one.yaml").write_text(one)
    maps = MapBook([folder, two])
    assert maps.get("house.more").provider == "house"
    assert maps.get("house.more").tokens == get_map("vllm.chat").tokens
    assert {"house.base", "house.more", "openai.chat"} <= set(maps.formats)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "format: openai.chat\nextends: vllm.chat\n",
            "0.yaml: format: got openai.chat, expected a name that no other map has",
        ),
        ("format: a.b\nextends: nope\n", "0.yaml: extends: got nope, expected the name of a format"),
        (
            "format: a.b\nextends: a.b\n",
            "0.yaml: extends: got a.b, expected a format that does not lead back to this one",
        ),
        ("format: a.b\nusage: $..x\n", "0.yaml: usage: got $..x, expected a path like $.a.b[0].'c.d'"),
        ("format: a.b\nid: [$.a, b]\n", "0.yaml: id[1]: got b, expected a path from the record: $.b"),
        (
            "format: a.b\nusage_from: openai.chat\nat: body\n",
            "0.yaml: at: got body, expected a path from the record: $.body",
        ),
        (
            "format: a.b\nextends: openai.chat\nprovider: {from: vendor}\n",
            "0.yaml: provider.from: got vendor, expected a path from the record: $.vendor",
        ),
        (
            "format: a.b\ntokens: {input: in, output: '.'}\n",
            "0.yaml: tokens.output: got ., expected a path like $.a.b[0].'c.d'",
        ),
        ("format: a.b\nusage: $.u\n", "0.yaml: tokens: got nothing, expected paths of the numbers, or usage_from"),
        ("format: a.b\nextends: c\nusage_from: c\n", "0.yaml: usage_from: got extends beside it, expected one of them"),
        ("format: a.b\nusage_from: openai.caht\n", "expected the name of a format; did you mean openai.chat"),
        (
            "format: a.b\nextends: vllm.chat\naliases: [openai.completions]\n",
            "0.yaml: aliases: got openai.completions, expected a name that no other map has",
        ),
        ("format: a.b\nskip: [on]\n", "0.yaml: skip[0]: got true, expected a condition: a path and a test"),
        (
            "format: a.b\nskip: [{path: $.a, equals: 1}]\n",
            "0.yaml: skip[0]: got the unknown key equals, expected one of all, any, any_of, at_least, contains, empty,",
        ),
        ("format: a.b\nretry: [{path: $.a}]\n", "0.yaml: retry[0]: got no test, expected one of all, any, any_of"),
        (
            "format: a.b\nreplay: [{path: $.a, empty: true, present: true}]\n",
            "0.yaml: replay[0]: got empty and present together, expected one of all,",
        ),
        (
            "format: a.b\nstream: {closed: [{all: [{path: $.a, present: 1}]}]}\n",
            "0.yaml: stream.closed[0].all[0].present: got 1, expected true or false",
        ),
        (
            "format: a.b\nbatch: [{path: $.a, at_least: true}]\n",
            "0.yaml: batch[0].at_least: got true, expected a number",
        ),
        ("format: a.b\nretry: [{empty: true}]\n", "0.yaml: retry[0]: got no path, expected the key path"),
        (
            "format: a.b\nstatus: {rules: [{path: $.a, values: {200: good}}]}\n",
            '0.yaml: status.rules[0].values.200: got "good", expected one of success, failed, cancelled, incomplete',
        ),
        ("- format\n", '0.yaml: document: got ["format"], expected object'),
        ("format: a.b\nusage: [1]\n", "0.yaml: usage"),
        ("format: a.b\nusage_from: openai.chat\nat: '$.'\n", "0.yaml: at: got $., expected a path like $.a.b[0].'c.d'"),
        (
            "format: a.b\nextends: vllm.chat\nminimum: [{model: '(', tokens: 1, as_of: '2026-01-01', source: x}]\n",
            "0.yaml: minimum: got (, expected a regular expression",
        ),
        ("format: A\n", '0.yaml: format: got "A", expected text matching'),
        ("format: a.b\ntoken: {}\n", "0.yaml: document: got the unknown key token, expected one of"),
        (
            "format: a.b\nadditive: {rule: maybe}\n",
            '0.yaml: additive.rule: got "maybe", expected one of "inclusive", "exclusive", "by_total"',
        ),
        ("usage: $.x\n", "0.yaml: document: got no format, expected the key format"),
    ],
)
def test_a_map_that_cannot_be_used_says_where_and_why(tmp_path, text, message):
    with pytest.raises(DocumentError) as raised:
        book(tmp_path, text)
    assert message in str(raised.value)


def test_a_format_that_nobody_knows_says_what_looks_like_it():
    with pytest.raises(UnknownFormatError, match="did you mean openai"):
        get_map("openai.chatt")
    with pytest.raises(UnknownFormatError, match="usage formats"):
        get_map("zzz")


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


def test_the_maps_of_the_documentation_work(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "USAGE_MAPS.md").read_text()
    texts = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    maps = book(tmp_path, *texts)
    (record,) = Intake(maps.get("shop.llm")).take([encode(LINE)], 0.0)
    assert counts(record) == (10, 4, None, 6, 1)
    line = {"id": "x", "tokens": {"in": 5, "out": 2, "hit": 90, "put": 5, "all": 102}}
    (record,) = Intake(maps.get("house.log")).take([encode(line)], 0.0)
    assert (counts(record), record.quality) == ((100, 90, 5, 5, 2), "ok")


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
