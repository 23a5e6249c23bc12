"""Public bug reports of log tailers and usage readers, turned into inputs with the right answer."""

from __future__ import annotations

import base64
import gzip
import json
import os
from pathlib import Path

import pytest

from prefix_cache_exporter.labels import Limits
from prefix_cache_exporter.release import Release
from prefix_cache_exporter.usage.maps.book import MapBook
from support.logs import record
from support.usage_source import Source

CASES = Path(__file__).parent / "cases"


def read(name: str) -> bytes:
    return (CASES / name).read_bytes()


def steps(name: str) -> list[dict]:
    return json.loads(read(name))["steps"]


def test_b21_one_response_on_several_lines_and_again_in_a_resumed_session(tmp_path):
    """https://github.com/ccusage/ccusage/issues/797, https://github.com/getagentseal/codeburn/pull/201"""
    lines = [{**json.loads(line), "type": "assistant"} for line in read("B21_s1.jsonl").splitlines()]
    source = Source(tmp_path, format="claude_code.jsonl", paths=(str(tmp_path / "*.jsonl"),))
    (tmp_path / "s1.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    source.poll()
    source.kill()
    again = {**json.loads(read("B21_s2_resumed.jsonl")), "type": "assistant"}
    (tmp_path / "s2.jsonl").write_text(json.dumps(again) + "\n")
    source.poll()
    source.poll(1000)
    assert source.total("requests") == 3
    assert source.total("cached_prompt_tokens") == 113676
    assert source.total("prompt_tokens") == 115932
    assert source.total("output_tokens") == 2497


def test_b28_every_attempt_writes_a_row(tmp_path):
    """https://github.com/BerriAI/litellm/issues/39455, https://github.com/BerriAI/litellm/issues/15740"""
    router = tmp_path / "router.yaml"
    router.write_text("{format: router, extends: openai.chat, title: x, id: [$.request_id], identity: id_and_status}")
    source = Source(tmp_path, read("B28_rows.jsonl"), format="router", maps=MapBook([router]))
    source.poll()
    assert source.total("requests", status="success") == 4
    assert source.total("requests", status="failed") == 3
    assert source.total("prompt_tokens") == 2300
    assert source.total("cached_prompt_tokens") == 1000


def test_b29_times_far_off_are_counted_now_and_said(tmp_path):
    """https://github.com/logtide-dev/logtide/pull/282"""
    source = Source(tmp_path, read("B29_skew.jsonl"))
    source.poll(0)
    assert source.total("requests") == 5
    assert source.series("skewed_records") == {("past",): 1, ("future",): 1, ("unparsable",): 1}


def test_b30_runs_of_nul(tmp_path):
    """https://github.com/moby/moby/issues/53631, https://github.com/logrotate/logrotate/issues/363"""
    source = Source(tmp_path, read("B30_nul.bin"))
    source.poll()
    assert source.total("requests") == 3
    assert source.series("lost_lines") == {("not_json",): 1}


@pytest.mark.parametrize("killed", [False, True])
def test_b32_a_position_beyond_the_end(tmp_path, killed):
    """https://github.com/DataDog/datadog-agent/pull/54149"""
    source = Source(tmp_path, record(0, 5) * 40)
    source.poll()
    if killed:
        source.kill()
    (write,) = [step for step in json.loads(read("B32_scenarios.json"))["past_eof"] if step["op"] == "write"]
    source.path.write_text(write["text"])
    before = source.total("requests")
    source.poll()
    assert source.total("requests") - before == 2


def test_b32_another_file_with_the_same_inode(tmp_path):
    """https://github.com/fluent/fluent-bit/issues/8025"""
    scenario = json.loads(read("B32_scenarios.json"))["inode_reuse"]
    source = Source(tmp_path, scenario[0]["text"])
    source.poll()
    inode = source.path.stat().st_ino
    with source.path.open("r+b") as file:  # the same inode for certain: tmpfs does not give one back at once
        source.kill()
        file.truncate()
        file.write(scenario[3]["text"].encode())
    assert source.path.stat().st_ino == inode
    source.poll()
    assert source.total("requests") == 1 + 3


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("pattern", ["app.log", "app.log*"])
def test_b33_a_rotated_file_is_packed_while_lines_were_unread(tmp_path, killed, pattern):
    """https://github.com/open-telemetry/opentelemetry-collector-contrib/issues/46105"""
    source = Source(tmp_path, paths=(str(tmp_path / pattern),))
    for step in steps("B33_scenario.json"):
        match step["op"]:
            case "append":
                source.append(step["text"])
            case "poll":
                source.poll()
                if killed:
                    source.kill()
            case "rename":
                source.path.rename(tmp_path / step["to"])
            case "gzip":
                plain = tmp_path / step["path"]
                plain.with_name(plain.name + ".gz").write_bytes(gzip.compress(plain.read_bytes()))
                plain.unlink()
            case "create":
                source.path.write_text(step["text"])
    source.poll()
    source.poll(70)
    source.poll()
    assert source.total("requests") == 4
    assert source.total("lost_lines") is None
    assert source.total("lost_files") is None


def test_b33_an_archive_that_cannot_be_read(tmp_path):
    source = Source(tmp_path, record(1), paths=(str(tmp_path / "app.log*"),))
    source.poll()
    (tmp_path / "app.log.1.gz").write_bytes(b"\x1f\x8b\x08\x00" + b"\xff" * 100)
    source.append(record(2))
    source.poll()
    assert source.total("requests") == 2
    assert source.total("lost_lines") is None
    assert source.series("lost_files") == {("corrupt",): 1}


def test_b34_one_line_above_the_limit_costs_one_line(tmp_path):
    """https://github.com/fluent/fluent-bit/issues/370, https://github.com/tigera/operator/pull/5054"""
    long = '{"id": "big", "messages": "' + "x" * (5 << 20) + '", ' + record(2)[1:]
    source = Source(tmp_path, record(1) + long + record(3), line_limit_bytes=1 << 20)
    source.poll()
    assert source.total("requests") == 2
    assert source.series("lost_lines") == {("too_long",): 1}
    source.kill()
    source.poll()
    assert source.total("requests") == 2


def test_b35_half_a_character_at_the_end_of_a_read(tmp_path):
    """https://github.com/elastic/filebeat/issues/296"""
    first, _, second, _ = steps("B35_scenario.json")
    source = Source(tmp_path, fields={"template": "$.tenant"})
    source.append(base64.b64decode(first["data"]))
    source.poll()
    assert (source.total("requests"), source.total("lost_lines")) == (None, None)
    source.append(base64.b64decode(second["data"]))
    source.poll()
    assert source.total("requests", template="a🙂b") == 1
    assert source.total("lost_lines") is None


def test_b36_container_lines_in_parts_and_two_streams(tmp_path):
    """https://github.com/splunk/splunk-connect-for-kubernetes/issues/549, https://github.com/fluent/fluent-bit/issues/4387"""
    source = Source(tmp_path, read("B36_cri.log"))
    source.poll()
    source.path.rename(tmp_path / "app.log.1")
    source.poll()
    source.poll(700)
    assert source.total("requests") == 2
    assert source.series("lost_lines") == {("not_json",): 1, ("orphan_partial",): 1}


def test_b48_tenants_beyond_the_bound_go_to_other(tmp_path):
    """https://github.com/BerriAI/litellm/issues/12159, https://github.com/prometheus/prometheus/issues/10484"""
    usage = '"usage": {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11}'
    lines = [f'{{"id": "c{i}", "user": "user-{i}", {usage}}}\n' for i in range(5000)]
    source = Source(
        tmp_path,
        "".join(lines),
        limits=Limits(labels={"task": 1000}),
        fields={"task": "$.user"},
    )
    source.poll()
    assert len(source.series("requests")) == 1001
    assert source.total("unreported_prompt_tokens") == 50_000
    known = set(source.series("requests"))
    source.kill()
    source.append("".join(line.replace('"c', '"d') for line in reversed(lines)))
    source.poll()
    assert set(source.series("requests")) == known
    assert source.total("unreported_prompt_tokens") == 100_000
    assert {amount for labels, amount in source.series("requests").items() if "other" not in labels} == {2}


def test_b50_the_last_lines_before_the_end(tmp_path):
    """https://github.com/open-telemetry/opentelemetry-operator/issues/4065; L3 comes while the target is still up."""
    source = Source(tmp_path)
    assert not source.ingest.caught_up
    for step in steps("B50_scenario.json"):
        match step["op"]:
            case "append":
                source.append(step["text"].rstrip("\n") if "L3" in step["text"] else step["text"])
            case "poll":
                assert source.ingest.step(draining=False) == 0.5
                assert source.ingest.caught_up
            case "sigterm":
                before = source.total("requests")
            case "target_stops":
                assert source.ingest.step(draining=True) == 0.25
                source.now += 2.1
                assert source.ingest.step(draining=True) is None
    source.recorder.commit()
    assert source.total("requests") - (before or 0) == 3
    source.kill()
    source.append("\n")
    source.poll()
    assert source.total("requests") == 3


def test_b52_a_revision_that_returns_after_it_was_withdrawn(tmp_path):
    """https://github.com/prometheus/statsd_exporter/issues/129"""
    source = Source(tmp_path, record(1, 100), hold=30)
    source.release = Release(template="t", template_revision="r1")
    source.poll()
    source.recorder.note_scrape(source.recorder.now())
    source.poll(31)
    assert source.total("prompt_tokens", template_revision="r1") == 100
    source.recorder.note_scrape(source.recorder.now())
    source.poll(7200)
    assert source.total("prompt_tokens", template_revision="r1") is None
    source.append(record(2, 50))
    source.poll()
    source.recorder.note_scrape(source.recorder.now())
    assert source.total("prompt_tokens", template_revision="r1") == 100
    source.poll(31)
    assert source.total("prompt_tokens", template_revision="r1") == 150


def test_a_line_of_100_megabytes_passes_in_bounded_memory(tmp_path):
    source = Source(tmp_path, record(1))
    with source.path.open("ab") as file:
        file.seek(100 << 20, os.SEEK_CUR)  # a hole is as long as a line of x, and quicker to write
        file.write(b"\n" + record(2).encode() + b'{"x": "')
        for _ in range(100):
            file.write(b"x" * (1 << 20))
        file.write(b'"}\n' + record(3).encode())
    source.poll()
    assert source.total("requests") == 3
    assert source.series("lost_lines") == {("too_long",): 1}
