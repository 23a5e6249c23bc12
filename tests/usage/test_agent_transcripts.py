"""Transcripts of agents: sums that are told again, forks, turns; total, read, write, uncached, output."""

from __future__ import annotations

import pytest

from prefix_cache_exporter.usage.intake import Intake
from prefix_cache_exporter.usage.maps.book import get_map
from prefix_cache_exporter.usage.record import UsageRecord
from support.usage import counts, encode, settled


def codex(total, last, **payload):
    info = {"total_token_usage": usage(*total), "last_token_usage": usage(*last)}
    return {
        "type": "event_msg",
        "timestamp": "2026-05-01T10:00:00Z",
        "payload": {"type": "token_count", "info": info, **payload},
    }


def usage(input_, cached, written, output):
    return {
        "input_tokens": input_,
        "cached_input_tokens": cached,
        "cache_write_input_tokens": written,
        "output_tokens": output,
        "reasoning_output_tokens": 0,
        "total_tokens": input_ + output,
    }


def test_codex_numbers_are_sums_that_are_sent_again_and_repeated_by_forks():
    meta = {"type": "session_meta", "payload": {"id": "parent"}}
    model = {"type": "turn_context", "payload": {"model": "gpt-5.6-codex"}}
    first, second = (
        codex((1000, 0, 900, 100), (1000, 0, 900, 100)),
        codex((3000, 950, 1000, 300), (2000, 950, 100, 200)),
    )
    nothing = {"type": "event_msg", "payload": {"type": "token_count", "info": None}}
    records = settled("codex.jsonl", meta, model, nothing, first, first, second, second)
    assert [counts(record) for record in records] == [(1000, 0, 900, 100, 100), (2000, 950, 100, 950, 200)]
    assert {record.model for record in records} == {"gpt-5.6-codex"}

    intake = Intake(get_map("codex.jsonl"))
    fork = {"type": "session_meta", "payload": {"id": "child", "forked_from_id": "parent"}}
    own = codex((4000, 1900, 1000, 400), (1000, 950, 0, 100))
    intake.take([encode(line) for line in (meta, model, first, second)], 0.0, "parent.jsonl")
    found = intake.take([encode(line) for line in (fork, meta, model, first, second, own)], 0.0, "child.jsonl")
    assert [counts(item) for item in found if isinstance(item, UsageRecord)] == [(1000, 950, 0, 50, 100)]


def test_codex_sums_that_begin_again_count_the_last_request_alone():
    records = settled("codex.jsonl", codex((9000, 0, 0, 10), (1000, 0, 0, 10)), codex((500, 0, 0, 5), (500, 0, 0, 5)))
    assert [record.total_input_tokens for record in records] == [1000, 500]


def response(id_, own, **payload):
    return {
        "type": "token_usage_record",
        "timestamp": "2026-09-06T10:00:00Z",
        "payload": {"response_id": id_, "usage": usage(*own), "thread_token_usage": usage(10**6, 0, 0, 9), **payload},
    }


def test_codex_responses_are_told_once_where_sums_repeat_them():
    before = codex((500, 0, 0, 5), (500, 0, 0, 5))  # by a version that wrote the sums alone
    first, first_sum = response("r1", (1000, 0, 900, 10)), codex((1500, 0, 900, 15), (1000, 0, 900, 10))
    compaction = response("rc", (50_000, 40_000, 0, 900))  # no sum has it: https://github.com/openai/codex/issues/47003
    second, second_sum = response("r2", (9000, 950, 0, 20)), codex((10_500, 950, 900, 35), (9000, 950, 0, 20))
    lines = (before, first, first_sum, compaction, first_sum, second, second_sum)
    records = settled("codex.jsonl", {"type": "turn_context", "payload": {"model": "gpt-5.6"}}, *lines)
    assert [(record.id, *counts(record)) for record in records] == [
        (None, 500, 0, 0, 500, 5),
        ("r1", 1000, 0, 900, 100, 10),
        ("rc", 50_000, 40_000, 0, 10_000, 900),
        ("r2", 9000, 950, 0, 8050, 20),
    ]
    assert {record.model for record in records} == {"gpt-5.6"}


def test_a_codex_fork_repeats_sums_without_the_responses_that_told_of_them():
    meta = {"type": "session_meta", "payload": {"id": "parent"}}
    fork = {"type": "session_meta", "payload": {"id": "child", "forked_from_id": "parent"}}
    told = codex((1000, 0, 900, 10), (1000, 0, 900, 10))
    intake = Intake(get_map("codex.jsonl"))
    intake.take([encode(line) for line in (meta, response("r1", (1000, 0, 900, 10)))], 0.0, "parent.jsonl")
    restarted = Intake(get_map("codex.jsonl"))
    restarted.merger.load({name: part for name, part in intake.merger.changes().items() if part is not None})
    restarted.take([encode(told)], 0.0, "parent.jsonl")
    own = response("r2", (2000, 950, 0, 20))
    found = restarted.take([encode(line) for line in (fork, meta, told, own)], 0.0, "child.jsonl")
    assert [item.id for item in found if isinstance(item, UsageRecord)] == ["r2"]


FORK = {"type": "session_meta", "payload": {"id": "child", "forked_from_id": "parent"}}
PARENT = {"type": "session_meta", "payload": {"id": "parent"}}


def told(outcomes):
    return [counts(item)[0] for item in outcomes if isinstance(item, UsageRecord)]


@pytest.mark.parametrize("by", ["sums", "responses"])
def test_a_codex_fork_that_is_read_before_its_parent_waits_for_it(by):
    """Which file is read first is chance: archived forks have names of their own."""
    first, second = (
        codex((1000, 0, 900, 100), (1000, 0, 900, 100)),
        codex((3000, 950, 1000, 300), (2000, 950, 100, 200)),
    )
    own = codex((4000, 1900, 1000, 400), (1000, 950, 0, 100))
    parent = [PARENT, first, second]
    if by == "responses":
        parent = [PARENT, response("r1", (1000, 0, 900, 100)), first, response("r2", (2000, 950, 100, 200)), second]
    intake = Intake(get_map("codex.jsonl"))
    found = intake.take([encode(line) for line in (FORK, PARENT, first, second, own)], 0.0, "archived/child.jsonl")
    assert told(found) == []
    found += intake.take([encode(line) for line in parent], 1.0, "sessions/parent.jsonl")
    assert told(found) == [1000, 2000]
    assert told(intake.settle(11.0)) == [1000]
    later = codex((5000, 2850, 1000, 500), (1000, 950, 0, 100))
    again = intake.take([encode(line) for line in (own, later)], 20.0, "archived/child.jsonl")
    assert told([*again, *intake.settle(40.0)]) == [1000]


SPAWNED = {
    "type": "session_meta",
    "payload": {"id": "child", "source": {"subagent": {"thread_spawn": {"parent_thread_id": "parent", "depth": 1}}}},
}


@pytest.mark.parametrize("order", [("parent", "child"), ("child", "parent")])
@pytest.mark.parametrize("copied", [(), (PARENT,)], ids=["", "with the parent's own first line"])
@pytest.mark.parametrize("by", ["sums", "responses"])
def test_a_codex_sub_agent_repeats_the_sums_of_whoever_spawned_it(by, copied, order):
    """Its parent stands elsewhere than a fork's: https://github.com/getagentseal/codeburn/pull/1383."""
    first, second = (
        codex((1000, 0, 900, 100), (1000, 0, 900, 100)),
        codex((3000, 950, 1000, 300), (2000, 950, 100, 200)),
    )
    own = [codex((4000, 1900, 1000, 400), (1000, 950, 0, 100))]
    parent = [PARENT, first, second]
    if by == "responses":
        parent = [PARENT, response("r1", (1000, 0, 900, 100)), first, response("r2", (2000, 950, 100, 200)), second]
        own = [response("c1", (1000, 950, 0, 100)), *own]
    files = {"parent": parent, "child": [SPAWNED, *copied, first, second, *own]}
    intake = Intake(get_map("codex.jsonl"))
    found = [one for name in order for one in intake.take([encode(line) for line in files[name]], 0.0, name)]
    assert sorted(told([*found, *intake.settle(10.0)])) == [1000, 1000, 2000]


def test_a_codex_sub_agent_that_begins_anew_counts_for_itself():
    first, own = codex((1000, 0, 900, 100), (1000, 0, 900, 100)), codex((700, 0, 0, 10), (700, 0, 0, 10))
    intake = Intake(get_map("codex.jsonl"))
    found = intake.take([encode(line) for line in (PARENT, first)], 0.0, "parent")
    found += intake.take([encode(line) for line in (SPAWNED, own)], 0.0, "child")
    assert told([*found, *intake.settle(10.0)]) == [1000, 700]


def test_a_codex_fork_of_a_fork_repeats_the_first_session():
    first = codex((1000, 0, 900, 100), (1000, 0, 900, 100))
    grandchild = {"type": "session_meta", "payload": {"id": "grandchild", "forked_from_id": "child"}}
    files = {
        "grandchild": (grandchild, FORK, PARENT, first, codex((1700, 0, 900, 160), (700, 0, 0, 60))),
        "child": (FORK, PARENT, first, codex((1500, 0, 900, 150), (500, 0, 0, 50))),
        "parent": (PARENT, first),
    }
    for order in (list(files), list(files)[::-1]):
        intake = Intake(get_map("codex.jsonl"))
        found = [one for name in order for one in intake.take([encode(line) for line in files[name]], 0.0, name)]
        assert sorted(told([*found, *intake.settle(10.0)])) == [500, 700, 1000]


def turn(input_, cached, output):
    return {
        "type": "turn.completed",
        "usage": {"input_tokens": input_, "cached_input_tokens": cached, "output_tokens": output},
    }


def test_codex_exec_tells_the_sums_of_its_thread_with_every_turn():
    def started(name):
        return {"type": "thread.started", "thread_id": name}

    intake = Intake(get_map("codex.jsonl"))
    one = [started("a"), {"type": "turn.started"}, {"type": "item.completed", "item": {"type": "agent_message"}}]
    found = intake.take([encode(line) for line in (*one, turn(1000, 900, 10), turn(3000, 2800, 30))], 0.0, "1.jsonl")
    assert [counts(item) for item in found if isinstance(item, UsageRecord)] == [
        (1000, 900, None, 100, 10),
        (2000, 1900, None, 100, 20),
    ]
    # Another thread in the file, the first one resumed in a file of its own, and a turn that never asked the model.
    found = intake.take([encode(line) for line in (started("b"), turn(5000, 0, 5), turn(0, 0, 0))], 1.0, "1.jsonl")
    assert told(found) == [5000]
    lines = (started("a"), turn(3000, 2800, 30), turn(3400, 3000, 34), {"type": "turn.failed", "error": {}})
    assert told(intake.take([encode(line) for line in lines], 2.0, "2.jsonl")) == [400]


def test_claude_code_lines_without_ids_stay_apart_and_other_events_are_none():
    line = {
        "type": "assistant",
        "message": {"model": "claude-opus-5", "usage": {"input_tokens": 7, "output_tokens": 1}},
    }
    assert len(settled("claude_code.jsonl", line, line, {"type": "summary"}, {"type": "user", "message": {}})) == 2
