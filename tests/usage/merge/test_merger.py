from __future__ import annotations

import pytest

from prefix_cache_exporter.usage.intake import Intake
from prefix_cache_exporter.usage.maps.book import get_map
from prefix_cache_exporter.usage.record import Duplicate, Skipped, UsageRecord
from support.usage import counts, encode, settled
from support.usage_streams import chunk, feed, stream


def records(found):
    return [item for item in found if isinstance(item, UsageRecord)]


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


def test_an_error_outside_of_any_stream_is_a_request_that_was_refused():
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    start = {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 9, "output_tokens": 1}}}
    stop = {"type": "message_stop"}
    delta = {"type": "message_delta", "usage": {"output_tokens": 4}}
    found = settled("anthropic.messages.stream", error, start, delta, stop, error, start | {"message": {"id": "n"}})
    assert [(record.id, record.status, record.quality) for record in found] == [
        (None, "failed", "usage_missing"),
        ("m", "success", "ok"),
        (None, "failed", "usage_missing"),
        ("n", "incomplete", "usage_missing"),
    ]
