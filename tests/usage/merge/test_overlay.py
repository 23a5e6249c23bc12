from __future__ import annotations

from prefix_cache_exporter.usage.merge.overlay import overlay
from prefix_cache_exporter.usage.record import Fragment


def test_a_later_number_mends_a_bad_one():
    held = Fragment(bad={"read": "negative", "input": "not_whole"}, time=5.0)
    overlay(held, Fragment(read=3, bad={"output": "negative"}, time=6.0, split={"5m": 1}, extra={"task": "a"}))
    assert held.bad == {"input": "not_whole", "output": "negative"}
    assert (held.read, held.time, held.split, held.extra) == (3, 5.0, {"5m": 1}, {"task": "a"})
