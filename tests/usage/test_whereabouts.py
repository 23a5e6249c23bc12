from __future__ import annotations

import base64
import gzip
import json

import pytest

from prefix_cache_exporter.usage.whereabouts import Looking, why_nothing
from support.usage_maps import book

OURS = "format: a.b\nusage_from: openai.chat\nat: $.response.body\n"
PAYLOAD = b'{"usage": {"prompt_tokens": 5}}'
BODY = "$.response.body"


def packed(data):
    return base64.b64encode(data).decode()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({}, "the line has no response"),
        ({"response": {}}, "$.response has no body"),
        ({"response": None}, "$.response is null, not an object"),
        ({"Response": {}}, "the line has Response, not response"),
        ({"response.body.usage": {}}, "the line has one key 'response.body.usage' with dots in it: quote it"),
        ({"response": {"body": []}}, f"{BODY} is a list, not an object"),
        ({"response": {"body": "<html>"}}, f"{BODY} is text, not an object or JSON of one"),
        ({"response": {"body": ""}}, f"{BODY} is empty"),
        (
            {"response": {"body": packed(PAYLOAD)}},
            f"{BODY} is base64 of JSON, which decode: {BODY} unpacks",
        ),
        (
            {"response": {"body": packed(gzip.compress(PAYLOAD))}},
            f"{BODY} is base64 of gzip, which decode: {BODY} unpacks",
        ),
        (
            {"response": {"body": packed(b"\x28\xb5\x2f\xfd" + bytes(16))}},
            f"{BODY} is base64 of zstd, which is not unpacked",
        ),
        ({"response": {"body": "VGhpcyBpcyBqdXN0IHNvbWUgdGV4dA=="}}, f"{BODY} is text, not an object or JSON of one"),
        (
            {"response": {"body": 'data: {"a": 1}\n\ndata: {"b": 1}\n\n'}},
            f"{BODY} is a text of several server-sent events, which each: {BODY}[*] takes apart",
        ),
        ({"response": {"body": {"usage": None}}}, f"{BODY}.usage is null, not an object"),
        ({"response": {"body": {"usage": 5}}}, f"{BODY}.usage is a number, not an object"),
        ({"response": {"body": {"usage": {"inp": 5}}}}, f"the object at {BODY}.usage has no prompt_tokens"),
        (
            {"response": {"body": json.dumps({"usage": {"promptTokens": 5}})}},
            f"the object at {BODY}.usage has promptTokens, not prompt_tokens",
        ),
        ({"response": {"body": {"usage": {"prompt_tokens": 5}}}}, None),
        ({"response": {"body": {"usage": {"prompt_tokens": ""}}}}, "what stands there is empty"),
        ({"response": {"body": {"usage": {"prompt_tokens": " - "}}}}, "what stands there is -"),
        ("text", None),
    ],
)
def test_why_a_line_has_no_tokens_is_said_in_words_of_the_map(tmp_path, line, said):
    assert why_nothing(line, book(tmp_path, OURS).get("a.b")) == said


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        ("usage.prompt_tokens", "the object at $.u has one key 'usage.prompt_tokens' with dots in it: quote it"),
        ("$.u.usage.prompt_tokens", "$.u has one key 'usage.prompt_tokens' with dots in it: quote it"),
        ("$.v.usage", "the line has no v"),
        ("'usage.prompt_tokens'", None),
    ],
)
def test_a_key_with_dots_in_it_wants_quotes(tmp_path, tokens, said):
    usage_map = book(tmp_path, f"format: a.b\nusage: $.u\ntokens: {{input: {json.dumps(tokens)}}}\n").get("a.b")
    assert why_nothing({"u": {"usage.prompt_tokens": 5}}, usage_map) == said


def test_each_record_of_a_line_has_its_own_reason(tmp_path):
    looking = Looking(book(tmp_path, OURS).get("a.b"))
    line = [{"response": {"body": {"usage": {"prompt_tokens": 5}}}}, {"response": 5}, "text"]
    assert [why for _, why in looking.look(json.dumps(line).encode())] == [
        None,
        "$.response is a number, not an object",
        None,
    ]
    assert looking.look(b"text")[0][1] is None
    payload = json.dumps({"response": {"body": packed(PAYLOAD)}}).encode()
    ((item, why),) = looking.look(payload)
    assert (item.kind, why) == ("lost", f"{BODY} is base64 of JSON, which decode: {BODY} unpacks")


def test_a_line_in_which_no_records_stand_says_where_they_were_looked_for(tmp_path):
    own = "format: a.b\nusage_from: openai.chat\nat: $.reply\neach: $.stepz[*]\n"
    looking = Looking(book(tmp_path, own).get("a.b"))
    line = {"steps": [{"reply": {"usage": {"prompt_tokens": 5}}}]}
    ((_, why),) = looking.look(json.dumps(line).encode())
    assert why == "the line has no reply, nor anything at $.stepz[*]"
    ((_, why),) = looking.look(b'{"stepz": [{"reply": {}}]}')
    assert why == "$.reply has no usage"
    ((_, why),) = looking.look(b'{"reply": {"usage": {"prompt_tokens": null}}}')
    assert why == "prompt_tokens at $.reply.usage is null"
