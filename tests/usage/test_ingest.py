from __future__ import annotations

import gzip
import json
import logging
import os
import sqlite3
from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefix_cache_exporter import measures
from prefix_cache_exporter.config.model import Namespaces
from prefix_cache_exporter.documents import DocumentError
from prefix_cache_exporter.labels import Limits
from prefix_cache_exporter.recorder import Change
from prefix_cache_exporter.release import Release
from prefix_cache_exporter.usage.inventory import load_inventory
from prefix_cache_exporter.usage.key_file import read_key
from prefix_cache_exporter.usage.quarantine import QuarantineFile
from prefix_cache_exporter.usage.record import Quarantined
from support.logs import record
from support.usage_source import Source

if TYPE_CHECKING:
    from pathlib import Path

FIELDS = {
    "template": "$.t",
    "template_revision": "$.r",
    "namespace": "$.ns",
    "task": "$.task",
    "eligible_tokens": "$.eligible",
    "leading_fingerprint": "$.front",
    "attempt": "$.attempt",
}


def line(number: int | None = None, prompt: int = 1000, cached: int | None = 0, output: int = 10, **more) -> str:
    details = None if cached is None else {"cached_tokens": cached}
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": prompt + output,
        "prompt_tokens_details": details,
    }
    return json.dumps({**({} if number is None else {"id": f"L{number}"}), "usage": usage, **more}) + "\n"


def test_every_family_of_a_record(tmp_path):
    source = Source(tmp_path, fields=FIELDS)
    known = {"t": "support", "r": "r1", "task": "answer", "model": "gpt-4o", "created": int(source.now)}
    source.append(
        line(1, 4000, 3072, 100, eligible=2048, **known)
        + line(2, 4000, 0, 100, eligible=2048, **known)
        + line(3, 500, None, 20, **known)
        + line(4, 4000, 3072, 5, attempt=2, status="failed", **known)
        + line(4, 4000, 3072, 5, attempt=2, status="failed", **known)
    )
    source.poll()
    labels = {"model": "gpt-4o", "template": "support", "template_revision": "r1", "status": "success"}
    expected = {
        "requests": 3,
        "reported_requests": 2,
        "unreported_requests": 1,
        "hit_requests": 1,
        "prompt_tokens": 8000,
        "unreported_prompt_tokens": 500,
        "cached_prompt_tokens": 3072,
        "uncached_prompt_tokens": 4928,
        "output_tokens": 220,
        "eligible_tokens": 4096,
        "eligible_cached_tokens": 2048,
        "eligible_requests": 2,
        # gpt-4o: 2.50 a million of input, 1.25 cached, 10 of output, in trillionths of a dollar
        "input_cost": 3072 * 1_250_000 + 4928 * 2_500_000,
        "counterfactual_input_cost": 8000 * 2_500_000,
        "output_cost": 200 * 10_000_000,
        "priced_requests": 2,
        "unpriced_requests": 1,
    }
    assert {name: source.total(name, **labels) for name in expected} == expected
    assert source.total("requests", status="failed", attempt="retry") == 1
    assert source.total("duplicate_records") == 1
    assert source.total("lines") == 5
    assert source.total("unpriced_requests", reason="cache_unknown") == 1
    assert source.total("input_cost", component="write", status="success") == 0
    levels = ("log_files", "log_readable", "log_unread_bytes", "open_records", "log_last_record_timestamp_seconds")
    assert [source.total(name) for name in levels] == [1, 1, 0, 0, source.now]


def test_writes_by_time_to_live(tmp_path):
    usage = {"input_tokens": 4, "cache_read_input_tokens": 100, "output_tokens": 1, "cache_creation_input_tokens": 1000}
    split = {"cache_creation": {"ephemeral_5m_input_tokens": 600, "ephemeral_1h_input_tokens": 400}}
    rows = ({"id": "1", "usage": {**usage, **split}}, {"id": "2", "usage": usage})
    nothing = {**usage, "cache_creation_input_tokens": 0}
    source = Source(tmp_path, "".join(json.dumps(row) + "\n" for row in rows), format="anthropic.messages")
    source.append(json.dumps({"id": "3", "usage": nothing}) + "\n")
    source.poll()
    found = {ttl: source.total("written_prompt_tokens", ttl=ttl) for ttl in ("5m", "1h", "unknown")}
    assert found == {"5m": 600, "1h": 400, "unknown": 1000}
    assert source.total("prompt_tokens") == 104 + 3 * 0 + 1104 * 2


def test_a_release_is_the_records_own_or_the_one_in_force(tmp_path):
    source = Source(tmp_path, fields=FIELDS)
    source.release = Release(template="support", template_revision="r7")
    source.append(line(1) + line(2, r="r6") + line(3, t="support") + line(4, t="other") + line(5, t="other", r="r1"))
    source.poll()
    found = {key[2:4]: amount for key, amount in source.series("requests").items()}
    assert found == {("support", "r7"): 2, ("support", "r6"): 1, ("other", ""): 1, ("other", "r1"): 1}


def test_latency_by_prompt_band_and_cache_state(tmp_path):
    fields = {"eligible_tokens": "$.eligible"}
    source = Source(tmp_path, format="litellm.slp", fields=fields, ttft_bands=(512, 2048))
    start = "2026-03-02T11:59:00Z"
    rows = [
        (100, 0, None, "0-512", "miss"),
        (512, 256, None, "0-512", "hit"),
        (513, 100, None, "513-2048", "partial"),
        (9000, 512, 512, "over 2048", "hit"),
        (9000, 256, 512, "over 2048", "partial"),
        (600, None, None, "513-2048", "unknown"),
    ]
    for number, (prompt, cached, eligible, _, _) in enumerate(rows):
        usage = {"prompt_tokens": prompt, "completion_tokens": 1, "total_tokens": prompt + 1}
        if cached is not None:
            usage["prompt_tokens_details"] = {"cached_tokens": cached}
        row = {
            "id": str(number),
            "status": "success",
            "custom_llm_provider": "openai",
            "startTime": start,
            "completionStartTime": "2026-03-02T11:59:00.300Z",
            "endTime": "2026-03-02T11:59:04Z",
            "metadata": {"usage_object": usage},
            "eligible": eligible,
        }
        source.append(json.dumps(row) + "\n")
    source.poll()
    for family in ("time_to_first_token_seconds", "duration_seconds"):
        found = sorted(key[-2:] for key in source.series(family))
        assert found == sorted((band, state) for *_, band, state in rows)
    (one,) = [
        one
        for one in source.recorder.exposed()
        if one.family.id == "time_to_first_token_seconds" and one.values[-2:] == ("0-512", "miss")
    ]
    assert one.parts["0.25"] == 0
    assert one.parts["0.5"] == one.parts["+Inf"] == 1
    assert one.parts["sum"] == pytest.approx(0.3)


def test_spans_that_no_sum_can_hold_cost_no_record(tmp_path):
    source = Source(tmp_path, format="portkey.chat")
    source.append(line(1, response_time=1000) + line(2, response_time=1e308) + line(3, response_time=1.7e308))
    source.poll()
    source.append(line(4, response_time=2000))
    source.poll()
    assert source.total("requests") == 4
    assert source.total("prompt_tokens") == 4000
    (spans,) = (one.parts for one in source.recorder.exposed() if one.family.id == "duration_seconds")
    assert (spans["+Inf"], spans["sum"]) == (2, 3.0)


def test_leading_fingerprints_of_a_revision(tmp_path):
    source = Source(tmp_path, fields=FIELDS)
    source.append("".join(line(n, r="good", front="same") + line(-n, r="bad", front=f"now {n}") for n in range(1, 40)))
    source.poll()
    assert source.total("leading_fingerprints", template_revision="good") == 1
    assert source.total("leading_fingerprints", template_revision="bad") == 39
    assert source.total("leading_fingerprint_requests", template_revision="good") == 39
    source.poll(1000)
    assert source.total("leading_fingerprints") is None


def test_leading_fingerprints_of_revisions_beyond_the_bound_are_counted_together(tmp_path):
    source = Source(tmp_path, fields=FIELDS, limits=Limits(labels={"template_revision": 2}))
    source.append("".join(line(n, t="t", r=f"r{n}", front=f"front {n % 300}") for n in range(1000)))
    source.poll()
    distinct, requests = source.series("leading_fingerprints"), source.series("leading_fingerprint_requests")
    assert {key[-1]: amount for key, amount in requests.items()} == {"r0": 1, "r1": 1, "other": 998}
    assert {key[-1]: amount for key, amount in distinct.items() if key[-1] != "other"} == {"r0": 1, "r1": 1}
    (others,) = (amount for key, amount in distinct.items() if key[-1] == "other")
    assert others == pytest.approx(300, rel=0.07)  # three times the standard error
    before = source.recorder.exposed()
    for _ in range(3):
        source.poll()
    overflow = [one.parts for one in source.recorder.exposed() if one.family.id == "label_overflow"]
    assert overflow == [one.parts for one in before if one.family.id == "label_overflow"]


def test_the_inventory_says_what_is_eligible(tmp_path):
    (tmp_path / "inventory.yaml").write_text(
        "segments: [{id: system, version: '1', owner: us, scope: all, sharing_group: all,"
        " expected_update_frequency: monthly, tokens: 1100}]\n"
        "templates: {support: {shared_prefix: [system]}}\n"
    )
    inventory = load_inventory(tmp_path / "inventory.yaml")
    source = Source(tmp_path, fields=FIELDS, format="vllm.chat", block_size_tokens=16)
    source.inventory = inventory
    source.kill()
    source.append(
        line(1, 2000, 1600, t="support", r="r1") + line(2, 2000, 100, t="support", r="r1") + line(3, 2000, 16)
    )
    source.poll()
    assert source.total("eligible_requests") == 2
    assert source.total("eligible_tokens") == 2 * 1088
    assert source.total("eligible_cached_tokens") == 1088 + 100
    assert source.total("reported_requests") == 3


def test_undecided_records_are_counted_and_may_be_kept_without_text(tmp_path):
    details = {"cached_tokens": None, "of secret": 5, "team": {"cached_tokens": 2}}
    usage = {"prompt_tokens": "many secrets", "completion_tokens": 3, "note": "secret", "secret@example.com": 7}
    bad = {"id": "x", "usage": {**usage, "prompt_tokens_details": details}}
    source = Source(tmp_path, json.dumps(bad) + "\n" + record(1), quarantine_file=tmp_path / "quarantine.jsonl")
    source.poll()
    assert source.series("quarantined_records") == {("input_not_a_number",): 1}
    assert source.total("requests") == 1
    kept = json.loads((tmp_path / "quarantine.jsonl").read_text())
    known = {"completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": None}}
    assert kept == {"reason": "input_not_a_number", "usage": known}


def test_a_quarantine_file_is_bounded_and_costs_no_record(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("prefix_cache_exporter"), "propagate", True)
    file = QuarantineFile(tmp_path / "q", largest=100)
    for _ in range(9):
        file.write(Quarantined("odd", {"n": 1}))
    assert (tmp_path / "q").stat().st_size <= 100
    QuarantineFile(tmp_path / "missing" / "q").write(Quarantined("odd"))
    assert [record.message.rpartition("; ")[0].rpartition("q ")[2] for record in caplog.records] == [
        "is full",
        "cannot be written: no such file or directory",
    ]


def test_lines_that_are_no_records_are_counted_by_reason(tmp_path):
    source = Source(tmp_path, "plain text\n[1]\ndata: [DONE]\n" + "[" * 20_000 + "\n" + record(1))
    source.poll()
    assert source.total("requests") == 1
    assert source.series("lost_lines") == {("not_json",): 1, ("not_an_object",): 1, ("too_deep",): 1}
    assert source.series("ignored_lines") == {("event_stream_framing",): 1}
    assert source.total("lines") == 5


def test_long_ids_that_begin_alike_are_those_of_other_requests(tmp_path):
    source = Source(tmp_path, "".join(line(id="resp_" + "x" * 600 + str(number)) for number in (1, 2, 3, 2)))
    source.poll()
    assert (source.total("requests"), source.total("duplicate_records")) == (3, 1)


def test_odd_numbers_are_said(tmp_path):
    source = Source(tmp_path, line(1, 100, 200))
    source.poll()
    assert source.series("anomalies") == {("cache_gt_input",): 1}
    assert source.total("requests") == 1
    assert source.total("unreported_prompt_tokens") == 100


def test_events_of_a_stream_settle_after_a_while_or_a_kill(tmp_path):
    chunk = {"id": "s1", "choices": [{"finish_reason": None}], "usage": {"prompt_tokens": 900, "completion_tokens": 1}}
    last = {"id": "s1", "choices": [], "usage": {"prompt_tokens": 900, "completion_tokens": 7}}
    last["usage"]["prompt_tokens_details"] = {"cached_tokens": 512}
    source = Source(tmp_path, json.dumps(chunk) + "\n", format="vllm.chat.stream", settle_seconds=5)
    source.poll()
    assert (source.total("requests"), source.total("open_records")) == (None, 1)
    source.kill()
    source.append(json.dumps(last) + "\n")
    source.poll()
    source.poll(1000)
    assert source.total("requests") == 1
    assert source.total("cached_prompt_tokens") == 512
    assert source.total("open_records") == 0
    assert source.total("output_tokens") == 7


@pytest.mark.parametrize("seconds", [-200_000, 200_000], ids=["back", "forward"])
def test_a_clock_that_is_set_ends_no_stream(tmp_path, seconds):
    first = {"id": "s1", "choices": [{"finish_reason": None}], "usage": {"prompt_tokens": 900, "completion_tokens": 1}}
    last = {"id": "s1", "choices": [{"finish_reason": "stop"}], "usage": {"prompt_tokens": 900, "completion_tokens": 7}}
    source = Source(tmp_path, json.dumps(first) + "\n", format="vllm.chat.stream", settle_seconds=5)
    source.poll()
    source.set_by = seconds
    source.poll()
    assert source.total("open_records") == 1
    source.append(json.dumps(last) + "\n")
    source.poll()
    source.poll(6)
    assert (source.total("requests", status="success"), source.total("output_tokens")) == (1, 7)


def test_a_mistake_of_ours_costs_one_counted_line(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(logging.getLogger("prefix_cache_exporter"), "propagate", True)
    source = Source(tmp_path, format="openai.chat.stream")

    def fail(line, *_):
        raise RuntimeError(f"cannot read {line}")

    source.append(record("secret") * 2)
    monkeypatch.setattr(source.ingest._uptake._intake, "slowly", fail)
    source.poll()
    monkeypatch.undo()
    source.append(record(2))
    source.poll()
    assert source.series("lost_lines") == {("internal_error",): 2}
    errors = [one for one in source.recorder.exposed() if one.family is measures.EXPORTER["internal_errors"]]
    assert [(one.values, one.parts[""]) for one in errors] == [(("usage/gw",), 3)]  # the batch, then each line
    assert "secret" not in caplog.text
    assert "a line could not be processed: RuntimeError in" in caplog.text


def test_a_step_is_bounded_and_the_next_goes_on(tmp_path, monkeypatch):
    source = Source(tmp_path, record(1) * 50_000)
    steps = 0
    monkeypatch.setattr(source.ingest, "_monotonic", lambda: source.now)
    clock = source.ingest._uptake._clock

    def slow():
        source.now += 0.4
        return clock()

    source.ingest._uptake._clock = slow
    while source.ingest.step(draining=False) == 0.0:
        steps += 1
        assert not source.ingest.caught_up
    assert steps > 1
    assert source.ingest.caught_up
    source.recorder.commit()
    assert source.total("lines") == 50_000


def test_a_change_is_bounded_where_each_record_has_labels_of_its_own(tmp_path, monkeypatch):
    source = Source(tmp_path, "".join(line(n, r=f"r{n}", pad="x" * 1000) for n in range(3000)), fields=FIELDS)
    sizes = []
    apply = source.recorder.apply

    def counted(change):
        sizes.append(sum(family.id == "requests" for family, _ in change.parts))
        apply(change)

    monkeypatch.setattr(source.recorder, "apply", counted)
    source.poll()
    assert sum(sizes) == source.total("requests") == 3000
    assert max(sizes) < 512 + 256  # of which one piece of the log has 256 KiB


def test_nothing_moves_twice_when_state_was_not_written(tmp_path):
    source = Source(tmp_path, record(1) + record(2))
    source.ingest.poll()
    source.kill(committed=False)
    source.poll()
    assert source.total("requests") == 2
    source.append(record(3))
    source.ingest.poll()
    source.kill(committed=False)
    source.poll()
    assert source.total("requests") == 3


def test_a_full_disk_stops_nothing(tmp_path, monkeypatch):
    source = Source(tmp_path, record(1))
    full = True
    write = source.recorder._store.write

    def refuse(*arguments):
        if full:
            raise sqlite3.OperationalError("database or disk is full")
        write(*arguments)

    monkeypatch.setattr(source.recorder._store, "write", refuse)
    source.poll()
    source.append(record(2))
    source.poll()
    full = False
    source.append(record(3))
    source.poll()
    source.kill()
    source.poll()
    assert source.total("requests") == 3


def test_keys_of_namespaces_come_from_a_file(tmp_path):
    (tmp_path / "key").write_text("secret\n")
    assert read_key(tmp_path / "key") == b"secret"
    names = Namespaces(buckets=4, key_file=tmp_path / "key")
    source = Source(tmp_path, fields={"tenant": "$.user"}, namespaces=names)
    source.append("".join(line(n, user=f"u{n}") for n in range(50)))
    source.poll()
    assert {key[4] for key in source.series("requests")} == {f"bucket-{n}" for n in range(4)}
    (tmp_path / "key").write_text(" \n")
    with pytest.raises(DocumentError, match="got nothing, expected a key"):
        read_key(tmp_path / "key")
    with pytest.raises(DocumentError, match="expected a readable file"):
        read_key(tmp_path / "nowhere")


class Churn:
    """A log that is written and rotated while the process polls, is ended and is killed before it has committed."""

    def __init__(self, folder: Path, pattern: str) -> None:
        self.folder = folder
        self.source = Source(folder, paths=(str(folder / pattern),))
        self.source.path.touch()
        self.source.poll()
        self.written = self.tokens = self.rotations = 0
        self.half = b""

    def write(self, count: int, cut: int = 0) -> None:
        """Appends records without ids; of the last one `cut` bytes come later."""
        numbers = range(self.written, self.written + count)
        self.written += count
        self.tokens += sum(numbers)
        self.half += b"".join(record("", n).replace('"id": "L", ', f'"n": {n}, ').encode() for n in numbers)
        self.source.append(self.half[: len(self.half) - cut])
        self.half = self.half[len(self.half) - cut :]

    def kill(self, *, committed: bool) -> None:
        if not committed:
            self.source.ingest.poll()
        self.source.kill(committed=committed)

    def rotate(self, kind: str) -> None:
        self.write(0)
        self.rotations += 1
        path, name = self.source.path, self.folder / f"app.log.{self.rotations}"
        if kind == "copytruncate":
            name.write_bytes(path.read_bytes())
            os.truncate(path, 0)
            return
        if kind == "recreate":
            self.source.poll()  # what nobody has read is lost with the file
            path.unlink()
        else:
            path.rename(name)
        path.touch()
        if kind == "pack":
            name.with_name(name.name + ".gz").write_bytes(gzip.compress(name.read_bytes()))
            name.unlink()

    def rest(self) -> None:
        self.write(0)
        for seconds in (1, 1, 700, 1):
            self.source.poll(seconds)
        self.source.ingest.close()


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_interleaving_of_writing_rotating_polling_and_dying_gives_the_same_sums(tmp_path_factory, data):
    churn = Churn(tmp_path_factory.mktemp("any"), data.draw(st.sampled_from(["app.log", "app.log*"])))
    steps = {
        "write": lambda: churn.write(data.draw(st.integers(1, 30))),
        "half": lambda: churn.write(data.draw(st.integers(1, 30)), data.draw(st.integers(1, 100))),
        "poll": churn.source.poll,
        "wait": lambda: churn.source.poll(70),
        "kill": lambda: churn.kill(committed=True),
        "lose": lambda: churn.kill(committed=False),
        **{kind: partial(churn.rotate, kind) for kind in ("rename", "copytruncate", "pack", "recreate")},
    }
    for step in data.draw(st.lists(st.sampled_from(list(steps)), max_size=25)):
        steps[step]()
    churn.rest()
    assert (churn.source.total("requests") or 0) == churn.written
    assert (churn.source.total("unreported_prompt_tokens") or 0) + (
        churn.source.total("prompt_tokens") or 0
    ) == churn.tokens
    assert not churn.source.total("lost_lines")
    churn.source.recorder.close()


def test_changes_name_their_source(tmp_path):
    source = Source(tmp_path, record(1))
    source.poll()
    kinds = {kind for kind, _ in source.recorder._cursors}
    assert kinds == {"log:gw", "merge:gw"}
    assert isinstance(Change().parts, dict)
