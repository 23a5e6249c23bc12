from __future__ import annotations

import bz2
import gzip
import json
import os
import subprocess
import sys
import threading
import time

import pytest

from prefix_cache_exporter.cli import run
from prefix_cache_exporter.report import reading

LINE = {
    "id": "1",
    "created": 1790000000,
    "model": "gpt-5",
    "usage": {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 60}},
}


def lines(count):
    return "".join(f"{json.dumps(LINE | {'id': str(n)})}\n" for n in range(count)).encode()


@pytest.mark.parametrize(
    "content",
    [
        lines(3),
        lines(3)[:-1],
        gzip.compress(lines(3)),
        gzip.compress(lines(2)) + gzip.compress(lines(3)[len(lines(2)) :]),
        json.dumps([LINE | {"id": str(n)} for n in range(3)], indent=1).encode(),
        b"".join(b"2026-09-21T12:00:00.0Z stdout F " + line + b"\n" for line in lines(3).splitlines()),
    ],
    ids=["lines", "no last newline", "gzip", "gzip members", "array", "cri"],
)
def test_logs_in_every_shape(tmp_path, report, content):
    path = tmp_path / "log"
    path.write_bytes(content)
    document = report(path, "--format", "openai.chat")
    assert document["lines"] == {"read": 3, "lost": {}, "ignored": {}}
    assert document["total"]["tokens"]["cached_prompt_tokens"] == 180


@pytest.mark.parametrize("content", [lines(3), lines(3)[:-1], gzip.compress(lines(3))])
@pytest.mark.parametrize("redirected", [True, False])
def test_standard_input(tmp_path, content, redirected):
    command = [sys.executable, "-m", "prefix_cache_exporter", "report", "-", "--format", "openai.chat", "--json"]
    (tmp_path / "log").write_bytes(content)
    if redirected:
        with (tmp_path / "log").open("rb") as log:
            done = subprocess.run(command, stdin=log, capture_output=True, check=True)
    else:
        done = subprocess.run(command, input=content, capture_output=True, check=True)
    assert json.loads(done.stdout)["total"]["requests"] == 3


@pytest.mark.parametrize(
    ("content", "reason"),
    [(gzip.compress(lines(30_000))[:-50], "truncated"), (bz2.compress(lines(3)), "unsupported_compression")],
)
def test_standard_input_that_cannot_be_read_to_its_end(content, reason):
    command = [sys.executable, "-m", "prefix_cache_exporter", "report", "-", "--format", "openai.chat", "--json"]
    done = subprocess.run(command, input=content, capture_output=True, check=False)
    document = json.loads(done.stdout)
    assert (done.returncode, document["unreadable_files"]) == (1, {"-": reason})
    assert document["lines"]["lost"] == ({"not_json": 1} if reason == "truncated" else {})
    assert (document["total"]["requests"] > 29_000) == (reason == "truncated")


def test_a_named_pipe_is_read_as_it_comes(tmp_path, report):
    path = tmp_path / "pipe"
    os.mkfifo(path)

    def write():
        with path.open("wb") as pipe:
            for line in lines(3).splitlines(keepends=True):
                pipe.write(line)
                pipe.flush()
                time.sleep(0.05)

    writer = threading.Thread(target=write)
    writer.start()
    assert report(path, "--format", "openai.chat")["total"]["requests"] == 3
    writer.join()


def test_patterns_name_several_files_and_a_request_in_two_of_them_counts_once(tmp_path, report):
    (tmp_path / "a.jsonl").write_bytes(lines(3))
    (tmp_path / "b.jsonl").write_bytes(lines(5))
    document = report(tmp_path / "*.jsonl", "--format", "openai.chat")
    assert (document["files"], document["total"]["requests"], document["records"]["duplicates"]) == (2, 5, 3)


def test_bad_lines_are_counted_by_reason(log, report):
    good = json.dumps(LINE)
    negative = json.dumps(LINE | {"id": "2", "usage": {"prompt_tokens": -5, "completion_tokens": 1}})
    document = report(log([good, "{not json", "", negative]), "--format", "openai.chat")
    assert document["lines"]["lost"] == {"not_json": 1}
    assert sum(document["records"]["quarantined"].values()) == 1
    assert document["total"]["requests"] == 1


def test_lines_that_are_no_records_are_ignored_by_reason(log, report):
    document = report(log(["data: [DONE]", json.dumps(LINE)]), "--format", "openai.chat.stream")
    assert document["lines"]["ignored"] == {"event_stream_framing": 1}


def test_a_damaged_archive_is_told_and_what_was_in_it_counts(tmp_path, report, capsys):
    whole = gzip.compress(lines(30_000))
    (tmp_path / "log.gz").write_bytes(whole[: len(whole) // 2] + b"\0" * 100)
    (tmp_path / "bad.gz").write_bytes(whole[:10] + b"\xff" * 1000)
    (tmp_path / "log.zst").write_bytes(b"\x28\xb5\x2f\xfd" + b"\0" * 100)
    document = report(
        tmp_path / "bad.gz", tmp_path / "log.gz", tmp_path / "log.zst", "--format", "openai.chat", status=1
    )
    assert document["unreadable_files"] == {
        str(tmp_path / "log.gz"): "truncated",
        str(tmp_path / "bad.gz"): "corrupt",
        str(tmp_path / "log.zst"): "unsupported_compression",
    }
    assert run(["report", str(tmp_path / "log.zst"), "--format", "openai.chat"]) == 1
    assert f"not read to its end: {tmp_path / 'log.zst'}: unsupported_compression" in capsys.readouterr().out


def test_a_log_that_is_replaced_while_it_is_read_is_told(tmp_path, report, monkeypatch):
    path = tmp_path / "log"
    path.write_bytes(lines(30_000))

    def truncating(content, blocks=reading.plain_blocks):
        for block in blocks(content):
            yield block
            os.truncate(path, 10)

    monkeypatch.setattr(reading, "plain_blocks", truncating)
    document = report(path, "--format", "openai.chat", status=1)
    assert document["unreadable_files"] == {str(path): "replaced"}
    assert document["total"]["requests"] > 0
