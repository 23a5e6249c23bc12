"""Logs that teams write themselves, each with the map that a reader of docs/USAGE_MAPS.md would write for it."""

from __future__ import annotations

import base64
import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefix_cache_exporter.usage.intake import Intake
from prefix_cache_exporter.usage.record import Skipped, UsageRecord
from prefix_cache_exporter.usage.whereabouts import Looking
from support.usage import counts
from support.usage_maps import book

USAGE = '{"prompt_tokens": 2000, "completion_tokens": 30, "prompt_tokens_details": {"cached_tokens": 1920}}'
BODY = f'{{"id": "c1", "created": 1790000000, "model": "gpt-5", "choices": [], "usage": {USAGE}}}'
CHUNKS = (
    '{"id": "c1", "model": "gpt-5", "choices": [{"index": 0, "delta": {"content": "hi"}}], "usage": null}',
    f'{{"id": "c1", "model": "gpt-5", "choices": [], "usage": {USAGE}}}',
)
HIT = (2000, 1920, None, 80, 30)
TEXT = json.dumps(BODY)
"""The body as text within JSON."""


def taken(tmp_path, text, *lines):
    """What the lines of a log come to: numbers, time and status of records, and why lines are none."""
    intake = Intake(book(tmp_path, text).get("shop.llm"))
    found = [outcome for line in lines for outcome in intake.take([line.encode()], 0.0)]
    found += intake.settle(0.0, everything=True)
    return [
        (counts(one), one.time, one.status) if isinstance(one, UsageRecord) else f"{one.kind}: {one.reason}"
        for one in found
        if isinstance(one, UsageRecord | Skipped)
    ]


FLAT = """\
format: shop.llm
provider: openai
usage: $
id: $.req_id
time: $.time_iso8601
model: $.model
tokens: {input: tokens_prompt, read: tokens_cached, output: tokens_completion}
status:
  rules:
    - {path: $.upstream_status, any_of: ['499'], is: cancelled}
    - {path: $.upstream_status, at_least: 400, is: failed}
"""


def test_flat_json_of_a_proxy_whose_numbers_are_text(tmp_path):
    line = '{"time_iso8601": "2026-03-02T19:59:00+00:00", "req_id": "%s", "upstream_status": "%s", %s}'
    numbers = '"tokens_prompt": "2000", "tokens_cached": "1920", "tokens_completion": "30"'
    nothing = '"tokens_prompt": "-", "tokens_cached": "-", "tokens_completion": "-"'
    lines = [line % ("a", "200", numbers), line % ("b", "429", nothing), line % ("c", "499", numbers)]
    assert taken(tmp_path, FLAT, *lines) == [
        (HIT, 1772481540.0, "success"),
        ((None, None, None, None, None), 1772481540.0, "failed"),
        (HIT, 1772481540.0, "cancelled"),
    ]


TWO_LINES = """\
format: shop.llm
provider: openai
usage: $.usage
id: $.rid
time: $.ts
model: $.model
tokens: {input: prompt_tokens, read: prompt_tokens_details.cached_tokens, output: completion_tokens}
status: {rules: [{path: $.status, at_least: 400, is: failed}]}
stream: {complete: [{path: $.kind, any_of: [response]}]}
"""


def test_request_and_response_on_two_lines_are_one_record(tmp_path):
    lines = [
        '{"kind": "request", "rid": "r1", "ts": "2026-03-02T19:59:00Z", "model": "gpt-5"}',
        '{"kind": "request", "rid": "r2", "ts": "2026-03-02T19:59:01Z", "model": "gpt-5"}',
        f'{{"kind": "response", "rid": "r1", "ts": "2026-03-02T19:59:02Z", "status": 200, "usage": {USAGE}}}',
        '{"kind": "response", "rid": "r3", "ts": "2026-03-02T19:59:03Z", "status": 503}',
    ]
    nothing = (None, None, None, None, None)
    assert taken(tmp_path, TWO_LINES, *lines) == [
        (HIT, 1772481540.0, "success"),
        (nothing, 1772481543.0, "failed"),
        (nothing, 1772481541.0, "incomplete"),  # nobody ever saw its response
    ]


@pytest.mark.parametrize(
    ("text", "line", "time"),
    [
        ("at: $.value\ntime: $.timestamp", f'{{"timestamp": 1790000000123, "value": {TEXT}}}', 1790000000.123),
        (
            "at: $.value\ndecode: $.value\ntime: $.timestamp",
            f'{{"timestamp": 1790000000123, "value": "{base64.b64encode(BODY.encode()).decode()}"}}',
            1790000000.123,
        ),
        (
            "at: $.value\ndecode: $.value\ntime: $.timestamp",
            f'{{"timestamp": 1790000000123, "value": "{base64.b64encode(gzip.compress(BODY.encode())).decode()}"}}',
            1790000000.123,
        ),
        ("at: $.message\ntime: $.at", f'{{"at": "2026-03-02T19:59:00Z", "message": {TEXT}}}', 1772481540.0),
        ("at: $.log\ntime: $.date", f'{{"date": 1790000000.5, "log": {TEXT}, "kubernetes": {{}}}}', 1790000000.5),
        (
            "at: $.log\ntime: $.time",
            f'{{"time": "2026-03-02T19:59:00Z", "stream": "stdout", "log": {TEXT}, "kubernetes": {{}}}}',
            1772481540.0,
        ),
        (
            "at: $.'@message'\ntime: $.'@timestamp'",
            f'{{"@timestamp": "2026-03-02 19:59:00.000", "@message": {TEXT}}}',
            1772481540.0,
        ),
        (
            'each: "$.logEvents[*]"\nat: $.message\ntime: $.timestamp',
            f'{{"logGroup": "g", "logEvents": [{{"id": "1", "timestamp": 1790000000123, "message": {TEXT}}}]}}',
            1790000000.123,
        ),
        (
            'each: "$.values[*]"\nat: "$[1]"\ntime: "$[0]"',
            f'{{"stream": {{"app": "gw"}}, "values": [["1790000000500000000", {TEXT}]]}}',
            1790000000.5,
        ),
        (
            'each: ["$.data.result[*].values[*]"]\ninherit: [stream]\nat: "$[1]"\nmodel: $.stream.app',
            f'{{"data": {{"result": [{{"stream": {{"app": "gw"}}, "values": [["1790000000500000000", {TEXT}]]}}]}}}}',
            1790000000.0,
        ),
        ("at: $.line", f'{{"labels": {{}}, "line": {TEXT}, "timestamp": "2026-03-02T19:59:00Z"}}', 1790000000.0),
    ],
    ids=[
        "kafka", "kafka-base64", "kafka-gzip", "vector", "fluent-bit", "fluent-bit-cri", "insights", "subscription",
        "loki", "loki-query", "logcli",
    ],
)  # fmt: skip
def test_a_shipper_holds_the_line_as_text_and_the_time_outside(tmp_path, text, line, time):
    assert taken(tmp_path, f"format: shop.llm\nusage_from: openai.chat\n{text}\n", line) == [(HIT, time, "success")]


def test_an_export_with_dots_in_its_keys(tmp_path):
    text = """\
format: shop.llm
provider: openai
usage: $._source
id: $._source.'response.id'
time: $._source.'@timestamp'
tokens:
  input: $._source.'usage.prompt_tokens'
  output: $._source.'usage.completion_tokens'
  read: $._source.'usage.prompt_tokens_details.cached_tokens'
"""
    line = (
        '{"_id": "e1", "_source": {"@timestamp": "2026-03-02T19:59:00.000Z", "response.id": "c1", '
        '"usage.prompt_tokens": 2000, '
        '"usage.completion_tokens": 30, "usage.prompt_tokens_details.cached_tokens": 1920}}'
    )
    assert taken(tmp_path, text, line) == [(HIT, 1772481540.0, "success")]


MIXED = (
    "format: shop.llm\nusage_from: openai.chat\ntime: $.ts\nskip: [{path: $.usage, present: false, reason: other}]\n"
)


def test_of_a_log_with_other_lines_in_it_the_map_says_which(tmp_path):
    lines = (
        "2026-03-02 INFO booting",
        '{"level": "info", "msg": "started"}',
        f'{{"ts": 1790000000, "id": "m1", "usage": {USAGE}}}',
        '  File "x.py", line 3',
        '2026-03-02 INFO [worker{3}] {"ts": 1790000001, "id": "m2", "usage": ' + USAGE + "}",
        '{"ts": 1790000002, "id": "m3", "usa',
        '{"log": "booting\\n", "stream": "stderr", "time": "2026-03-02T19:59:00Z"}',
    )
    other, one = "ignored: other", (HIT, 1790000000.0, "success")
    lost, text = "lost: not_json", "ignored: text"
    assert taken(tmp_path, MIXED, *lines) == [lost, other, one, lost, lost, lost, lost]
    assert taken(tmp_path, f"{MIXED}text: ignored\n", *lines) == [text, other, one, text, text, lost, text]
    found = taken(tmp_path, f"{MIXED}text: prefix\n", *lines)
    assert found == [text, other, one, text, (HIT, 1790000001.0, "success"), lost, text]


def test_a_shipper_of_a_log_with_other_lines_in_it_wraps_them_alike(tmp_path):
    """Text in the envelope is a line of text, unless something says that it was a request."""
    text = "format: shop.llm\nusage_from: openai.chat\nat: $.message\n"
    failed = f"{text}status: {{rules: [{{path: $.code, at_least: 400, is: failed}}]}}\n"
    lines = [
        '{"message": "INFO latency=5 booting"}',
        f'{{"message": {TEXT}}}',
        '{"message": "{\\"usage\\": {"}',
        '{"message": "<html>", "code": 502}',
        '{"message": ""}',
    ]
    lost, ignored, one = "lost: not_json", "ignored: text", (HIT, 1790000000.0, "success")
    nothing = (None, None, None, None, None)
    empty, refused = (nothing, None, "success"), (nothing, None, "failed")
    assert taken(tmp_path, text, *lines[:3], lines[4]) == [lost, one, lost, empty]
    assert taken(tmp_path, f"{failed}text: ignored\n", *lines) == [ignored, one, lost, refused, empty]
    prefixed = [f'{{"message": {json.dumps("INFO usage " + BODY.replace("c1", "c2"))}}}']
    assert taken(tmp_path, f"{failed}text: prefix\n", *lines[:2], *prefixed) == [ignored, one, one]


STREAM = "format: shop.llm\nusage_from: openai.chat.stream\ntime: $.ts\n"


def test_every_chunk_of_a_stream_on_a_line(tmp_path):
    bare = [f"data: {chunk}" for chunk in CHUNKS]
    framed = ["event: message", bare[0], "", bare[1], "data: [DONE]", ""]
    wrapped = [json.dumps({"ts": 1790000000, "chunk": line}) for line in (*framed[:2], *framed[3:5])]
    framing = "ignored: event_stream_framing"
    one = (HIT, None, "success")
    assert taken(tmp_path, STREAM, *framed) == [framing, "ignored: blank", one, framing, "ignored: blank"]
    assert taken(tmp_path, f"{STREAM}at: $.chunk\n", *wrapped) == [framing, (HIT, 1790000000.0, "success"), framing]
    timed = [f"2026-03-02T19:59:00Z {line}" for line in (*bare, "data: [DONE]")]
    assert taken(tmp_path, f"{STREAM}text: prefix\n", *timed) == [one, "ignored: text"]


def test_a_whole_stream_in_one_field(tmp_path):
    """Gateways keep what went over the wire as it was; of another request, the same field is JSON."""
    text = f"""\
{STREAM}each: "$.response.body[*]"
inherit: [ts]
"""
    streamed = "".join(f"data: {chunk}\n\n" for chunk in CHUNKS) + "data: [DONE]\n\n"
    lines = [
        json.dumps({"ts": 1790000000, "response": {"body": body}}) for body in (streamed, BODY.replace("c1", "c2"))
    ]
    one = (HIT, 1790000000.0, "success")
    assert taken(tmp_path, text, *lines) == [one, one]


SPAN = '{"spanId": "%s", "endTimeUnixNano": "1790000000000000000", "attributes": [%s]}'
ATTRIBUTES = (
    '{"key": "gen_ai.usage.input_tokens", "value": {"intValue": "2000"}}, '
    '{"key": "gen_ai.usage.cache_read.input_tokens", "value": {"intValue": "1920"}}, '
    '{"key": "gen_ai.usage.output_tokens", "value": {"intValue": "30"}}'
)


@pytest.mark.parametrize("wrap", [lambda text: text, json.dumps], ids=["object", "text"])
def test_a_format_that_holds_lists_keeps_them_in_an_envelope(tmp_path, wrap):
    """A record stands where all of them stood, so that the map's own paths still begin at the line."""
    text = "format: shop.llm\nusage_from: otel.span\nat: $.payload.otlp\ntime: $.received\n"
    spans = ", ".join(SPAN % (number, ATTRIBUTES) for number in "12")
    export = f'{{"resourceSpans": [{{"scopeSpans": [{{"spans": [{spans}]}}]}}]}}'
    line = f'{{"received": 1790000009, "payload": {{"otlp": {wrap(export)}}}}}'
    assert [(one[0], one[1]) for one in taken(tmp_path, text, line)] == [(HIT, 1790000009.0)] * 2
    nothing = wrap('{"resourceSpans": []}')
    empty = f'{{"received": 1, "payload": {{"otlp": {nothing}}}}}'
    assert taken(tmp_path, text, empty) == []


KEYS = st.sampled_from(
    ["response", "body", "usage", "log", "stream", "values", "prompt_tokens", "type", "id", "ts", "x"]
)
TEXTS = st.sampled_from(["", "x", "data: {}", "data: [DONE]", f"data: {BODY}\n\ndata: 5\n", BODY, "[1, {}]", "b'{}'"])
WORDS = st.sampled_from(["stdout", "eyJhIjogMX0=", "AIMessageChunk", "turn.completed"])
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 9) | st.floats() | TEXTS | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
ODD_MAPS = (
    "usage_from: openai.chat\nat: $.response.body\ndecode: $.response.body\ntext: prefix",
    "usage_from: otel.span\nat: $.response.body\ntime: $.ts",
    'usage_from: openai.chat.stream\neach: "$.response.body[*]"\ninherit: [ts]\ntext: ignored',
    'usage_from: anthropic.messages\neach: "$.values[*]"\nat: "$[1]"\ntime: "$[0]"\ninherit: [stream]',
    "usage_from: helicone.model_usage\nat: $.log\ntime: $.ts",
    "usage_from: langchain.usage_metadata\nat: $.values[0]",
    "usage_from: bedrock.invoke_model.stream\nat: $.x",
    "usage_from: codex.jsonl\nat: $.body",
)


@pytest.fixture(scope="module")
def odd_maps(tmp_path_factory):
    texts = (f"format: shop.{chr(97 + number)}\n{text}\n" for number, text in enumerate(ODD_MAPS))
    maps = book(tmp_path_factory.mktemp("odd"), *texts)
    return [maps.get(f"shop.{chr(97 + number)}") for number in range(len(ODD_MAPS))]


@given(lines=st.lists(ANYTHING, min_size=1, max_size=3), prefix=st.sampled_from(["", "data: ", "INFO "]))
def test_no_line_is_too_odd(odd_maps, lines, prefix):
    for usage_map in odd_maps:
        intake, looking = Intake(usage_map), Looking(usage_map)
        for line in lines:
            text = (prefix + json.dumps(line)).encode()
            assert intake.take([text], 0.0) is not None
            assert all(why is None or isinstance(why, str) for _, why in looking.look(text))
        intake.settle(0.0, everything=True)
