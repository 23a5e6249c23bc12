from __future__ import annotations

import pytest

from prefix_cache_exporter.usage.events import events, is_events


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('data: {"a": 1}\n\ndata: {"a": 2}\n\ndata: [DONE]\n\n', [{"a": 1}, {"a": 2}]),
        ('data:{"a": 1}\ndata:{"a": 2}', [{"a": 1}, {"a": 2}]),
        ('event: x\r\ndata: {"a": 1}\r\n\r\nid: 5\r\ndata: {"a": 2}\r\n\r\n', [{"a": 1}, {"a": 2}]),
        # one event over several lines, as Gemini's Code Assist writes them
        ('data: {"usage": {\ndata: "in": 5\ndata: }}\n\ndata: {"a": 1}\n\n', [{"usage": {"in": 5}}, {"a": 1}]),
        ('data: [\rdata: {"a": 1}\rdata: ]\r\r', [[{"a": 1}]]),
        ('data: {\ndata: "a": 1}\nevent: x\ndata: {"b": 1}', [{"a": 1}, {"b": 1}]),
        # cut off, in a log without blank lines and in one with
        ('data: {"a": 1}\ndata: {"b"\ndata: {"a": 2}', [{"a": 1}, {"a": 2}]),
        ('data: {"a": 1}\n\ndata: {"b"\n\ndata: {"a": 2}', [{"a": 1}, {"a": 2}]),
        (': OPENROUTER PROCESSING\n\ndata: {"a": 1}\n\n: ping\n\n', [{"a": 1}]),
        ("", []),
    ],
)  # fmt: skip
def test_the_data_of_events(text, found):
    assert events(text) == found


@pytest.mark.parametrize(
    ("text", "are"),
    [
        ("data: {}", True),
        ("event: ping\ndata: {}", True),
        (': OPENROUTER PROCESSING\n\ndata: {"a": 1}', True),
        ("id: 5\rdata: {}", True),
        ("retry: 10\r\ndata: {}", True),
        ("id: 5", False),
        (": data: {}", False),
        ('{"data": 1}', False),
    ],
)
def test_how_events_begin(text, are):
    assert is_events(text) is are


def test_many_lines_of_one_event_are_read_in_one_go():
    text = "data: [{}\n" + "data: ,{}\n" * 50_000 + "data: ]\n"
    assert len(events(text)[0]) == 50_001
