from __future__ import annotations

from prefix_cache_exporter.usage.intake import Intake
from prefix_cache_exporter.usage.maps.book import get_map
from support.usage_streams import chunk, feed, stream


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
