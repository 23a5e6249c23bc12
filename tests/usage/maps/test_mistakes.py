from __future__ import annotations

from pathlib import Path

import pytest

from prefix_cache_exporter.documents import DocumentError
from prefix_cache_exporter.usage.maps.book import MapBook
from support.usage_maps import book

OURS = "format: a.b\nusage_from: openai.chat\n"


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
        ("format: a.b\nskip: [true]\n", "0.yaml: skip[0]: got true, expected a condition: a path and a test"),
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
        (
            f"{OURS}retry: [{{path: $.a, any_of: []}}]\n",
            "0.yaml: retry[0].any_of: got [], expected a list of values, at least one",
        ),
        (
            f"{OURS}retry: [{{all: []}}]\n",
            "0.yaml: retry[0].all: got [], expected a list of conditions, at least one",
        ),
        (
            f"{OURS}retry: [{{path: $.a, none_of: [1, null]}}]\n",
            "0.yaml: retry[0].none_of[1]: got null, expected text, a number, true or false",
        ),
        (
            f"{OURS}retry: [{{path: $.a, contains: ''}}]\n",
            '0.yaml: retry[0].contains: got "", expected text that is not empty',
        ),
        (
            f"{OURS}context: [{{path: $.type, any_of: [turn], set: {{model: model}}}}]\n",
            "0.yaml: context[0].set.model: got model, expected a path from the record: $.model",
        ),
        (
            "&a {format: a.b, usage_from: openai.chat, status: *a}\n",
            "0.yaml: document: got an alias within what it stands for, expected YAML that ends",
        ),
        (f"{OURS}id: ''\n", '0.yaml: id: got "", expected a path like $.a.b'),
        ("format: a.b\nretry: [{empty: true}]\n", "0.yaml: retry[0]: got no path, expected the key path"),
        (
            "format: a.b\nttft: [{from: $.a, to: $.b}, {path: $.c, unit: s, when: [{path: $.d, any_of: x}]}]\n",
            '0.yaml: ttft[1].when[0].any_of: got "x", expected a list of values',
        ),
        (
            "format: a.b\nstatus: {rules: [{path: $.a, values: {200: good}}]}\n",
            '0.yaml: status.rules[0].values.200: got "good", expected one of success, failed, cancelled, incomplete',
        ),
        ("- format\n", '0.yaml: document: got ["format"], expected object'),
        ("format: a.b\nusage: [1]\n", "0.yaml: usage"),
        ("format: a.b\nusage_from: openai.chat\nat: '$.'\n", "0.yaml: at: got $., expected a path like $.a.b[0].'c.d'"),
        (
            "format: a.b\nextends: vllm.chat\nminimum: [{model: '(', tokens: 1, as_of: '2026-01-01', source: x}]\n",
            "0.yaml: document: got the unknown key minimum, expected one of ",
        ),
        ("format: A\n", '0.yaml: format: got "A", expected text matching'),
        ("format: a.b\ntoken: {}\n", "0.yaml: document: got the unknown key token, expected one of"),
        (
            "format: a.b\nadditive: {rule: maybe}\n",
            '0.yaml: additive.rule: got "maybe", expected one of "inclusive", "exclusive", "by_total"',
        ),
        ("usage: $.x\n", "0.yaml: document: got no format, expected the key format"),
        (
            f"{OURS}usage_form: x\n",
            "0.yaml: document: got the unknown key usage_form, expected one of additive, ",
        ),
        (f"{OURS}modle: $.m\n", "usage, usage_from; did you mean model?"),
        (
            f"{OURS}tokens: {{inptu: x}}\n",
            "0.yaml: tokens: got the unknown key inptu, expected one of extra_input, ",
        ),
        (
            f"{OURS}provider: {{form: $.v}}\n",
            "provider: got the unknown key form, expected one of default, from, n",
        ),
        (f"{OURS}tokens: {{read: 5}}\n", "0.yaml: tokens.read: got 5, expected a path or a list of paths"),
        (f"{OURS}at: [$.a]\n", "0.yaml: at: got [\"$.a\"], expected a path like $.a.b[0].'c.d'"),
        (f"{OURS}stream: true\n", "0.yaml: stream: got true, expected object or null"),
        (f"{OURS}stream: {{idle_seconds: 0}}\n", "0.yaml: stream.idle_seconds: got 0, expected more than 0"),
        (
            f"{OURS}at: $.items[*]\n",
            "0.yaml: at: got a path with [*], expected one without: only each goes through a list",
        ),
        (
            f"{OURS}tokens: {{input: ['parts[*].in']}}\n",
            "0.yaml: tokens.input[0]: got a path with [*], expected one without: only each goes through a list",
        ),
        (
            "format: a.b\nextends: openai.chat\nat: $.x\n",
            "0.yaml: at: got no usage_from beside it, expected the format of the object there as usage_from",
        ),
        (
            f"{OURS}skip: {{path: $.x, present: true, reason: a}}\n",
            "expected a list of conditions: [{path: $.a, present: true}]",
        ),
        (
            f"{OURS}status: {{rules: [{{path: $.c, at_least: 400, is: error}}]}}\n",
            '0.yaml: status.rules[0].is: got "error", expected one of success, failed, cancelled, incomplete',
        ),
        (
            f"{OURS}status: {{rules: [{{path: $.c, at_least: 400}}]}}\n",
            "0.yaml: status.rules[0].is: got nothing, expected one of success, failed, cancelled, incomplete",
        ),
        (f"{OURS}duration: $.ms\n", '0.yaml: duration: got "$.ms", expected a list of time spans: [{path: $.ms, unit'),
        (f"{OURS}duration: [$.ms]\n", '0.yaml: duration[0]: got "$.ms", expected a time span: {path: $.ms, unit: ms}'),
        (f"{OURS}ttft: [{{from: $.a}}]\n", "0.yaml: ttft[0]: got no to, expected path and unit, or from and to"),
        (f"{OURS}ttft: [{{unit: s}}]\n", "0.yaml: ttft[0]: got neither path nor from and to, expected path and unit, "),
        ("format: a.b\nusage: $.u\ntokens: {output: x}\n", "0.yaml: tokens: got no input, expected the key input: "),
        (f"{OURS}inherit: [ts]\n", "0.yaml: inherit: got no each beside it, expected each: where the records of a "),
    ],
)
def test_a_map_that_cannot_be_used_says_where_and_why(tmp_path, text, message):
    with pytest.raises(DocumentError) as raised:
        book(tmp_path, text)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "skip: [{path: $.hit, any_of: [yes], reason: hit}]",
            "0.yaml: skip[0].any_of[0]: got yes, which YAML takes for true, expected 'yes' in quotes, or true",
        ),
        (
            "status: {rules: [{path: $.ok, values: {no: failed}}]}",
            "0.yaml: status.rules[0].values: got no, which YAML takes for false, expected 'no' in quotes, or false",
        ),
        (
            "status: {rules: [{path: $.end, values: {null: failed, ok: success}}]}",
            "0.yaml: status.rules[0].values: got the key null, which YAML takes for nothing, expected a word",
        ),
        ("time: on", "0.yaml: time: got on, which YAML takes for true, expected 'on' in quotes, or true"),
        (
            "skip: [{path: $.code, none_of: [0200], reason: x}]",
            "0.yaml: skip[0].none_of[0]: got 0200, which YAML takes for another number, expected '0200' in quotes",
        ),
        (
            "skip: [{path: $.at, any_of: [12:30], reason: x}]",
            "0.yaml: skip[0].any_of[0]: got 12:30, which YAML takes for another number, expected '12:30' in quotes",
        ),
    ],
)
def test_a_word_that_yaml_takes_for_something_else_is_told(tmp_path, text, message):
    """It would be held against every line and never be found."""
    with pytest.raises(DocumentError) as raised:
        book(tmp_path, f"{OURS}{text}\n")
    assert message in str(raised.value)


def test_what_is_true_or_false_however_it_is_written_may_be(tmp_path):
    text = "skip: [{path: $.x, present: yes, reason: &a x}, {path: $.'on', any_of: ['yes', true, 5, 0.5], reason: *a}]"
    assert book(tmp_path, f"{OURS}{text}\ncumulative: off\n").get("a.b").cumulative is False


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("a.b", "a.b"), "1.yaml: format: got a.b, expected a name that no other map has; 0.yaml has it"),
        (
            ("openai.chat",),
            "0.yaml: format: got openai.chat, expected a name that no other map has; one of the shipped ones",
        ),
    ],
)
def test_a_name_that_is_taken_says_by_whom(tmp_path, monkeypatch, names, message):
    monkeypatch.chdir(tmp_path)
    for number, name in enumerate(names):
        Path(f"{number}.yaml").write_text(f"format: {name}\nextends: vllm.chat\n")
    with pytest.raises(DocumentError) as raised:
        MapBook(["0.yaml", "1.yaml"][: len(names)])
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("- format: a.b\n", ['document: got [{"format": "a.b"}], expected object']),
        ("", ["document: got null, expected object"]),
        (
            "format: a.b\nextends: openai.chat\nusage_from: openai.chat\n",
            ["usage_from: got extends beside it, expected one of them"],
        ),
    ],
)
def test_a_mistake_is_told_once(tmp_path, text, told):
    with pytest.raises(DocumentError) as raised:
        book(tmp_path, text)
    assert [line.partition("0.yaml: ")[2] for line in str(raised.value).splitlines()] == told


def test_a_circle_of_maps_is_told(tmp_path):
    circle = [f"format: a.{one}\nusage_from: a.{other}\n" for one, other in ("bc", "cd", "db")]
    with pytest.raises(DocumentError) as raised:
        book(tmp_path, *circle)
    assert "2.yaml: usage_from: got a.b, expected a format that does not lead back to this one" in str(raised.value)
