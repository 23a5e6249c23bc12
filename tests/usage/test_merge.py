from __future__ import annotations

import msgspec
import pytest

from prefix_cache_exporter.usage.intake import Intake
from prefix_cache_exporter.usage.maps.book import get_map
from prefix_cache_exporter.usage.merge import overlay
from prefix_cache_exporter.usage.record import Duplicate, Fragment, Skipped, UsageRecord
from prefix_cache_exporter.usage.seen import Seen
from support.usage import counts, encode, settled


def chunk(id_, prompt=None, cached=None, output=0, *, last=False, text="x"):
    usage = None
    if prompt is not None:
        usage = {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}
        if cached is not None:
            usage["prompt_tokens_details"] = {"cached_tokens": cached}
    choices = [] if last else [{"delta": {"content": text}}]
    return {**({"id": id_} if id_ else {}), "object": "chat.completion.chunk", "choices": choices, "usage": usage}


def feed(intake, *lines, now=0.0, scope="f"):
    return intake.take([encode(line) for line in lines], now, scope)


def records(found):
    return [item for item in found if isinstance(item, UsageRecord)]


def stream(**options):
    return Intake(get_map("vllm.chat.stream"), **options)


def test_an_explicit_zero_overwrites_an_earlier_number():
    # https://github.com/BerriAI/litellm/pull/40743
    start = {
        "type": "message_start",
        "message": {"id": "m", "usage": {"input_tokens": 9, "cache_read_input_tokens": 500, "output_tokens": 1}},
    }
    delta = {
        "type": "message_delta",
        "usage": {"cache_read_input_tokens": 0, "cache_creation_input_tokens": None, "output_tokens": 4},
    }
    (record,) = settled("anthropic.messages.stream", start, delta)
    assert counts(record) == (9, 0, None, 9, 4)


def test_a_stream_settles_when_it_is_complete_and_repeats_are_duplicates():
    intake = stream()
    assert feed(intake, chunk("a"), chunk("a", 10, 5, 1)) == []
    (record,) = feed(intake, chunk("a", 10, 5, 2, last=True))
    assert counts(record) == (10, 5, None, 5, 2)
    assert feed(intake, chunk("a", 10, 5, 2, last=True)) == [Duplicate()]


def test_interleaved_streams_with_ids_do_not_mix():
    intake = stream()
    found = feed(intake, chunk("a"), chunk("b"), chunk("a", 10, 0, 1, last=True), chunk("b", 20, 8, 1, last=True))
    assert [record.total_input_tokens for record in found] == [10, 20]


def test_streams_without_ids_follow_one_another_in_a_file():
    intake = stream()
    found = feed(intake, chunk(None), chunk(None, 10, 0, 1, last=True), chunk(None), chunk(None, 20, 0, 1, last=True))
    found += feed(intake, chunk(None, 7, 0, 1), scope="other")
    found += feed(intake, chunk(None, 9, 0, 1), scope="other")  # another prompt: another request
    found += intake.settle(0.0, everything=True)
    assert [record.total_input_tokens for record in found] == [10, 20, 7, 9]


def test_counts_that_fall_and_text_after_usage_begin_another_request():
    intake = stream()
    found = feed(intake, chunk(None, 10, 0, 5), chunk(None, 10, 0, 2))
    assert [record.output_tokens for record in found] == [5]
    finished = {**chunk(None, 10, 0, 9), "choices": [{"finish_reason": "stop"}]}
    assert feed(intake, finished) == []
    assert [record.output_tokens for record in feed(intake, chunk(None))] == [9]


def test_a_new_start_settles_what_was_before_it():
    start = {"type": "message_start", "message": {"usage": {"input_tokens": 9, "output_tokens": 1}}}
    intake = Intake(get_map("anthropic.messages.stream"))
    found = feed(intake, start, start)
    assert [(record.quality, record.total_input_tokens) for record in found] == [("partial", 9)]
    assert intake.merger.end("f")[0].quality == "partial"
    assert feed(intake, {"type": "message_stop"}) == [Skipped("ignored", "orphan_event")]
    assert intake.merger.end("nowhere") == ()


def test_silence_settles_sooner_once_the_output_is_final():
    intake = stream(settle_seconds=10)
    feed(intake, chunk("open"), {**chunk("closed", 5, 0, 1), "choices": [{"finish_reason": "stop"}]})
    assert intake.settle(9.0) == ()
    assert [record.id for record in intake.settle(10.0)] == ["closed"]
    assert intake.settle(299.0) == ()
    assert [record.status for record in intake.settle(300.0)] == ["incomplete"]
    assert Intake(get_map("vllm.chat")).settle(1e9) == ()


def test_a_clock_that_was_set_back_does_not_hold_records_for_ever():
    intake = stream()
    feed(intake, chunk("a"), now=1e9)
    assert len(intake.settle(0.0)) == 1


def test_open_records_are_bounded():
    intake = stream(open_records=2)
    found = feed(intake, *(chunk(str(n), n, 0, 1) for n in range(5)))
    assert [record.id for record in found] == ["0", "1", "2"]
    assert intake.merger.open_records == 2


def test_state_survives_a_kill_and_holds_no_id():
    intake = stream()
    secret = "chatcmpl-very-secret"
    feed(intake, chunk(secret), {**chunk(secret, 10, 5, 1), "choices": [{"finish_reason": "stop"}]})
    feed(intake, chunk("other-secret", 3, 0, 1, last=True))
    stored = intake.merger.changes()
    assert intake.merger.changes() == {}
    assert not any(b"secret" in payload for payload in stored.values())
    again = stream()
    again.merger.load(stored)
    assert feed(again, chunk("other-secret", 3, 0, 1, last=True)) == [Duplicate()]
    (record,) = feed(again, chunk(secret, 10, 5, 2, last=True))
    assert counts(record) == (10, 5, None, 5, 2)


def test_state_that_is_none_is_refused():
    with pytest.raises(msgspec.DecodeError):
        stream().merger.load({"merging": b"nonsense"})


def test_files_without_end_do_not_fill_memory():
    intake = Intake(get_map("vllm.chat.stream"))
    intake.merger._most_scopes = 2
    for number in range(5):
        feed(intake, chunk(None), scope=str(number))
    assert len(intake.merger._scopes) == 2


def test_a_later_number_mends_a_bad_one():
    held = Fragment(bad={"read": "negative", "input": "not_whole"}, time=5.0)
    overlay(held, Fragment(read=3, bad={"output": "negative"}, time=6.0, split={"5m": 1}, extra={"task": "a"}))
    assert held.bad == {"input": "not_whole", "output": "negative"}
    assert (held.read, held.time, held.split, held.extra) == (3, 5.0, {"5m": 1}, {"task": "a"})


def test_the_memory_of_settled_requests_is_bounded_and_stored_in_segments():
    seen = Seen(5000, 4)
    keys = [number.to_bytes(4, "big") for number in range(13_000)]
    assert all(seen.add(key) for key in keys)
    assert not seen.add(keys[-1])
    assert 5000 <= len(seen) < 5000 + 2 * 4096
    assert keys[0] not in seen
    assert keys[-5000] in seen
    changes = seen.changes()
    assert changes["seen/0"] is None
    again = Seen(5000, 4)
    again.load({name: payload for name, payload in changes.items() if payload is not None})
    assert again.keys == seen.keys
    again.add(b"new!")
    assert list(again.changes()) == ["seen/3"]


def test_a_full_segment_is_not_written_again_after_a_restart():
    seen = Seen(5000, 4)
    for number in range(4095):
        seen.add(number.to_bytes(4, "big"))
    again = Seen(5000, 4)
    again.load(dict.fromkeys(["seen/0"], b"".join(n.to_bytes(4, "big") for n in range(4096))))
    again.add(b"new!")
    assert list(again.changes()) == ["seen/1"]
    several = [bytes([n, n, n, n]) for n in range(3)]
    again.keys.update(several)
    again.added(several)
    assert again.changes()["seen/1"] == b"new!" + b"".join(several)


def response(id_, status, tokens=None):
    usage = {"input_tokens": tokens, "output_tokens": 1, "total_tokens": tokens + 1} if tokens else None
    return {"id": id_, "object": "response", "status": status, "usage": usage, "created_at": 1790000000}


def test_a_line_without_usage_does_not_make_a_duplicate_of_the_one_that_brings_it():
    intake = Intake(get_map("openai.responses"))
    running, done = response("r", "in_progress"), response("r", "completed", 10)
    assert feed(intake, running, running) == []
    assert intake.merger.open_records == 1
    (record,) = [one for one in feed(intake, done) if isinstance(one, UsageRecord)]
    assert (record.total_input_tokens, record.status) == (10, "success")
    assert intake.settle(400.0) == (Skipped("ignored", "told_later"),)
    assert feed(intake, running, done) == [Duplicate(), Duplicate()]


def test_the_general_way_takes_the_line_with_usage_for_the_one_that_lacked_it():
    intake = Intake(get_map("openai.responses"))
    assert intake.slowly(encode(response("r", "queued")), 0.0) == []
    (record,) = intake.slowly(encode(response("r", "completed", 10)), 5.0)
    assert (record.total_input_tokens, record.status) == (10, "success")
    assert intake.settle(400.0) == ()


@pytest.mark.parametrize(("status", "seconds"), [("completed", 10.0), ("in_progress", 300.0)])
def test_a_line_whose_usage_never_comes_settles_without(status, seconds):
    intake = Intake(get_map("openai.responses"))
    assert feed(intake, response("r", status)) == []
    assert intake.settle(seconds - 1) == ()
    (record,) = intake.settle(seconds)
    assert (record.quality, record.status) == (
        "usage_missing",
        {"completed": "success", "in_progress": "incomplete"}[status],
    )
    failed = feed(intake, response("f", "failed"))
    assert [(one.quality, one.status) for one in failed] == [("usage_missing", "failed")]


def test_what_follows_the_repeated_start_of_a_stream_is_of_a_request_that_was_told():
    usage = {"input_tokens": 9, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 2, "output_tokens": 1}
    events = [
        {"type": "message_start", "message": {"id": "m", "usage": usage}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 16}},
        {"type": "message_stop"},
    ]
    intake = Intake(get_map("anthropic.messages.stream"))
    (record,) = feed(intake, *events)
    assert record.output_tokens == 16
    assert feed(intake, *events) == [Duplicate(), Duplicate(), Skipped("ignored", "orphan_event")]


def test_numbers_that_no_state_can_hold_do_not_stop_it_from_being_stored():
    intake = stream(keep_raw=True)
    usage = {"prompt_tokens": 10**400, "completion_tokens": -(2**63) - 1, "total_tokens": 2**62}
    assert feed(intake, {"id": "a", "choices": [{"delta": {}}], "usage": usage}) == []
    assert "merging" in intake.merger.changes()
    (quarantined,) = intake.settle(0.0, everything=True)
    assert quarantined.usage == {"total_tokens": 2**62}
