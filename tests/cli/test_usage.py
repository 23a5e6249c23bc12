from __future__ import annotations

import bz2
import gzip
import io
import json
import os
import sys

import pytest

from prefix_cache_exporter.__main__ import main

USAGE = {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11, "prompt_tokens_details": {"cached_tokens": 4}}
GOOD = {"id": "a", "created": 1790000000, "model": "m", "usage": USAGE}


@pytest.fixture
def log(tmp_path):
    def write(*lines, name="log.jsonl"):
        file = tmp_path / name
        file.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
        return str(file)

    return write


def test_records_as_json_have_exactly_these_fields(log, capsys):
    assert main(["usage", "normalise", "--format", "openai.chat", "--json", log(GOOD, GOOD, "nonsense")]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == {
        "id": "a",
        "format": "openai.chat",
        "provider": "openai",
        "model": "m",
        "time": 1790000000.0,
        "status": "success",
        "quality": "ok",
        "anomalies": [],
        "total_input_tokens": 10,
        "cache_read_tokens": 4,
        "cache_write_tokens": None,
        "cache_write_by_ttl": {},
        "uncached_input_tokens": 6,
        "output_tokens": 1,
        "ttft_seconds": None,
        "duration_seconds": None,
    }
    assert err == "1 duplicate\n1 lost: not_json\n"


def test_records_as_a_table(log, capsys):
    bad = {"usage": {"prompt_tokens": -1}}
    assert (
        main(["usage", "normalise", "--format", "openai.chat", log(GOOD, {**GOOD, "id": "b", "usage": None}, bad)]) == 0
    )
    out, err = capsys.readouterr()
    assert out == (
        "model  status   quality        input  read  written  uncached  output\n"
        "m      success  ok                10     4        -         6       1\n"
        "m      success  usage_missing      -     -        -         -       -\n"
    )
    assert err == "1 quarantined: input_negative\n"


def test_the_override_and_records_that_settle_at_the_end(log, capsys):
    start = {
        "type": "message_start",
        "message": {"usage": {"input_tokens": 9, "cache_read_input_tokens": 4, "output_tokens": 1}},
    }
    arguments = ["usage", "normalise", "--format", "anthropic.messages.stream", "--json", log(start)]
    assert main([*arguments, "--input-includes-cache", "true"]) == 0
    assert json.loads(capsys.readouterr().out)["total_input_tokens"] == 9
    assert main([*arguments, "--input-includes-cache", "false"]) == 0
    assert json.loads(capsys.readouterr().out)["total_input_tokens"] == 13


def test_standard_input_gzip_and_arrays(tmp_path, capsys, monkeypatch):
    packed = tmp_path / "log.gz"
    packed.write_bytes(gzip.compress(json.dumps(GOOD).encode()))
    array = tmp_path / "log.json"
    array.write_text(json.dumps([GOOD, {**GOOD, "id": "b"}], indent=2))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(GOOD).encode())))
    for file, records in ((str(packed), 1), (str(array), 2), ("-", 1)):
        assert main(["usage", "normalise", "--format", "openai.chat", "--json", file]) == 0
        assert len(capsys.readouterr().out.splitlines()) == records


def test_what_stands_before_damage_is_shown_with_the_damage(tmp_path, capsys):
    packed = tmp_path / "log.gz"
    packed.write_bytes(gzip.compress(json.dumps(GOOD).encode() + b"\n" + os.urandom(99).hex().encode())[:-40])
    assert main(["usage", "normalise", "--format", "openai.chat", str(packed)]) == 1
    out, err = capsys.readouterr()
    assert out.splitlines()[1:] == ["m      success  ok          10     4        -         6       1"]
    assert err == (f"1 lost: not_json\nerror: {packed}: file: got an archive cut short, expected one that is whole\n")


@pytest.mark.parametrize("command", [["usage", "normalise", "--format"], ["check", "log"]])
def test_packed_standard_input_is_read_or_named(command, capsys, monkeypatch):
    line = json.dumps(GOOD).encode()
    for content, code, said in (
        (gzip.compress(line), 0, ""),
        (bz2.compress(line), 1, "error: -: file: got a bzip2 archive, expected a log, plain or gzip\n"),
    ):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert main([*command, "openai.chat", "-"]) == code
        assert capsys.readouterr().err == said


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ["--format", "nope", "x"],
            2,
            "error: command line: --format: got nope, expected one that `usage formats` lists",
        ),
        (
            ["--format", "openai.chat", "missing.jsonl"],
            1,
            "error: missing.jsonl: file: got no such file or directory, ",
        ),
        (["--format", "openai.chat", "--map", "missing.yaml", "x"], 1, "error: missing.yaml: file: got no such file"),
    ],
)
def test_what_cannot_be_read_is_one_line(arguments, code, message, capsys):
    assert main(["usage", "normalise", *arguments]) == code
    assert message in capsys.readouterr().err


def test_formats_are_listed(tmp_path, capsys):
    own = tmp_path / "own.yaml"
    own.write_text("format: our.log\nusage_from: openai.chat\nat: $.body\ntitle: our own log\n")
    assert main(["usage", "formats", "--map", str(own)]) == 0
    out = capsys.readouterr().out
    assert "openai.chat " in out
    assert "our own log" in out
    assert "(also openai.completions)" in out
    assert main(["usage", "formats", "--json"]) == 0
    listed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {"format", "aliases", "title", "rule", "aggregate"} == set(listed[0])
    own.write_text("format: our.log\nnonsense: 1\n")
    assert main(["usage", "formats", "--map", str(own)]) == 1
    assert "own.yaml: document: got the unknown key nonsense" in capsys.readouterr().err


def test_a_log_is_checked_line_by_line(log, capsys):
    file = log(
        GOOD,
        "nonsense",
        {"id": "b", "usage": None},
        {"id": "c", "usage": {**USAGE, "total_tokens": 99}},
        {"id": "d", "usage": {"prompt_tokens": "x"}},
        {"id": "e", "usage": {"completion_tokens": 5}},
        GOOD,
        {"error": {"message": "no"}},
    )
    assert main(["check", "log", "openai.chat", file]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{file}: line 2: lost, got text, expected one JSON object",
        f"{file}: line 4: the total is not input and output",
        f"{file}: line 5: quarantined, no number for input at prompt_tokens",
        f"{file}: line 6: no input tokens at prompt_tokens: the object at $.usage has no prompt_tokens",
        f"{file}: line 3: a success without token counts at $.usage: $.usage is null, not an object",
        (
            f"{file}: 1 anomaly, 1 duplicate, 1 lost: not_json, 1 ok, 1 partial, "
            "1 quarantined: input_not_a_number, 2 usage_missing"
        ),
        f"{file}: where a log holds other text as well, its map says so: text: ignored, or text: prefix",
        f"{file}: 1 of 2 records without a time at $.created or $.timestamp or $.created_at",
        f"{file}: 1 of 2 records without a model at $.model",
    ]


def test_a_map_without_a_provider_or_cached_tokens_is_told_so(log, tmp_path, capsys):
    own = tmp_path / "own.yaml"
    own.write_text("format: our.log\nusage: $\ntokens: {input: in, output: out}\n")
    file = log({"in": 5, "out": 1})
    assert main(["check", "log", str(own), file]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{file}: 1 cache_unknown",
        f"{file}: no record has a provider at any path of the map",
        f"{file}: no record has a number of cached tokens at any path of the map",
    ]
    assert main(["check", "log", "otel.flat", log({"gen_ai.system": "openai", "gen_ai.usage.input_tokens": 5})]) == 0
    assert "no record has a number of cached tokens at 'gen_ai.usage.cache_read.input_tokens' or " in (
        said := capsys.readouterr().out
    )
    assert " or 14 more\n" in said


def test_every_line_is_said_to_have_become_something(log, capsys):
    chunks = [
        {"id": "c", "model": "m", "choices": [{"index": 0}], "usage": None},
        {"id": "c", "model": "m", "choices": [], "usage": USAGE},
        {"id": "c", "model": "m", "choices": [], "usage": USAGE},
        "data: [DONE]",
        {"id": "d", "model": "m", "choices": [{"index": 0, "finish_reason": "stop"}]},
    ]
    file = log(*chunks)
    assert main(["check", "log", "openai.chat.stream", "--all", file]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{file}: line 1: part of a record that settles later",
        f"{file}: line 2: ok, success: 10 input = 4 read + 6 uncached, 1 output",
        f"{file}: line 3: duplicate",
        f"{file}: line 4: ignored: event_stream_framing",
        f"{file}: line 5: part of a record that settles later",
        f"{file}: line 5: a success without token counts at $.usage or $.choices[0].usage: $.choices[0] has no usage",
        f"{file}: 1 duplicate, 1 ignored: event_stream_framing, 1 ok, 1 usage_missing",
        f"{file}: no record has a time at $.created or $.timestamp or $.created_at",
    ]


def test_mistakes_alike_are_named_ten_times_and_counted(log, capsys):
    file = log(*[f"{number} nonsense" for number in range(13)], GOOD)
    assert main(["check", "log", "openai.chat", file]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[9:] == [
        f"{file}: line 10: lost, got text, expected one JSON object",
        f"{file}: 3 more like line 1; --all names them",
        f"{file}: 13 lost: not_json, 1 ok",
        f"{file}: where a log holds other text as well, its map says so: text: ignored, or text: prefix",
    ]
    assert main(["check", "log", "openai.chat", "--all", file]) == 1
    assert len(capsys.readouterr().out.splitlines()) == 13 + 1 + 2


def test_a_path_of_a_map_that_never_finds_anything_is_told(log, tmp_path, capsys):
    """Requests without a model have no cost, without an id no repeats: nothing is wrong, and yet it is."""
    own = tmp_path / "own.yaml"
    own.write_text(
        "format: our.log\nusage_from: openai.chat\nat: $.body\nid: $.reqid\ntime: $.tz\nmodel: $.modle\n"
        "ttft: [{path: $.ttfb, unit: ms}]\n"
    )
    lines = [{"req_id": "1", "ts": 1790000000, "ttfb": 210, "body": GOOD}, {"req_id": "2", "body": GOOD}]
    file = log(*lines)
    assert main(["check", "log", str(own), file]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{file}: 2 ok",
        f"{file}: no record has an id at $.reqid",
        f"{file}: no record has a time at $.tz",
        f"{file}: no record has a model at $.modle",
        f"{file}: 1 of 2 records without a time to first token at $.ttfb",
    ]


def test_a_status_in_a_word_that_the_map_does_not_know_is_told(log, tmp_path, capsys):
    """It counts as a success: a new word for a failure would move requests and money without a sign."""
    own = tmp_path / "own.yaml"
    rules = "status: {rules: [{path: $.end, values: {ok: success, error: failed}}]}"
    own.write_text(f"format: our.log\nusage_from: openai.chat\nat: $.body\nid: $.n\ntime: $.t\n{rules}\n")
    ends = ["OK", "error", "timeout", "timeout", None]
    file = log(*({"n": str(number), "t": 1790000000, "end": end, "body": GOOD} for number, end in enumerate(ends)))
    assert main(["check", "log", str(own), file]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{file}: 5 ok",
        f"{file}: 2 with a word at $.end that the map does not know, taken for a success",
    ]


def test_a_good_log_and_one_of_another_format(log, tmp_path, capsys):
    file = log(GOOD, {"type": "ping"}, name="good.jsonl")
    assert main(["check", "log", "openai.chat", log(GOOD)]) == 0
    assert main(["check", "log", "claude_code.jsonl", file]) == 1
    assert "no record in it; is its format claude_code.jsonl?" in capsys.readouterr().err
    assert main(["check", "log", "openai.chat", log()]) == 1
    assert main(["check", "log", "openai.chat", str(tmp_path / "missing")]) == 1
    assert main(["check", "log", "nope", file]) == 2
    unclear = {"usage": {"inputTokens": 9, "cachedInputTokens": 5, "outputTokens": 1}}
    assert main(["check", "log", "vercel_ai.v5", log(unclear)]) == 1
    assert "set input_includes_cache for the source" in capsys.readouterr().out


def test_a_map_in_the_making_is_checked_against_a_log(log, tmp_path, capsys):
    own = tmp_path / "own.yaml"
    own.write_text("format: our.log\nusage_from: openai.chat\nat: $.body\n")
    assert main(["check", "log", str(own), log({"body": GOOD})]) == 0
    assert main(["check", "log", str(own), log({"other": GOOD})]) == 1
    assert "a success without token counts at $.body.usage: the line has no body" in capsys.readouterr().out


def test_lines_that_are_too_long_are_lost(tmp_path, capsys):
    file = tmp_path / "long.jsonl"
    file.write_bytes(
        json.dumps(GOOD).encode()
        + b"\n{"
        + b" " * (5 << 20)
        + b"}\n"
        + json.dumps({**GOOD, "id": "b"}).encode()
        + b"\n"
    )
    assert main(["check", "log", "openai.chat", str(file)]) == 1
    assert "lost, " in capsys.readouterr().out


def test_a_log_of_another_format_is_said_to_be_one(tmp_path, capsys):
    """An empty table alone would look like a log without traffic."""
    log = tmp_path / "log.jsonl"
    log.write_text("GET / 200\n")
    assert main(["usage", "normalise", "--format", "openai.chat", str(log)]) == 0
    said = f"1 lost: not_json\n{log}: no record in it; is its format openai.chat?\n"
    assert capsys.readouterr().err == said
