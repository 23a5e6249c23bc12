from __future__ import annotations

import pytest

from prefix_cache_exporter.documents import DocumentError
from support.usage_maps import book


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
    ],
)
def test_a_map_that_cannot_be_used_says_where_and_why(tmp_path, text, message):
    with pytest.raises(DocumentError) as raised:
        book(tmp_path, text)
    assert message in str(raised.value)
