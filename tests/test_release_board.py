from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter import measures
from prefix_cache_exporter.labels import Limits
from prefix_cache_exporter.recorder import Change, Recorder
from prefix_cache_exporter.release import Releases, from_mapping
from prefix_cache_exporter.release_board import ReleaseBoard
from prefix_cache_exporter.state import Store
from support.clock import Clock
from support.page import samples

if TYPE_CHECKING:
    from pathlib import Path

FIRST = "prefix_cache_release_first_traffic_timestamp_seconds"
INFO = "prefix_cache_release_info"


def traffic(recorder: Recorder, revision: str, tokens: int) -> None:
    change = Change()
    labels = {"source": "a", "provider": "vllm", "model": "m", "template": "t", "template_revision": revision}
    change.add(measures.ENGINE["prompt_tokens"], labels, tokens)
    recorder.apply(change)
    recorder.commit()


def declared(revision: str, **more: object) -> Releases:
    return from_mapping({"template": "t", "template_revision": revision, **more}, "release.yaml")


def revisions(found: dict[str, float]) -> dict[str, float]:
    return {text.split('template_revision="')[1].split('"')[0]: value for text, value in found.items()}


def test_a_revision_is_described_from_its_first_traffic_on_also_when_replaced(tmp_path: Path) -> None:
    clock = Clock(1000)
    recorder = Recorder(Store(tmp_path / "s.db"), Limits(), hold_seconds=0, clock=clock)
    board = ReleaseBoard(recorder)
    board.declare("a", declared("r1", cold_window_seconds=900, predicted_population_hit_ratio=0.46), valid=True)
    board.publish()
    assert samples(recorder, INFO) == {}  # declared, but no traffic yet

    traffic(recorder, "r1", 0)
    board.publish()
    assert samples(recorder, FIRST) == {}
    clock.advance(10)
    traffic(recorder, "r1", 5)
    board.declare("a", declared("r2", release_fingerprint="f2"))
    clock.advance(10)
    traffic(recorder, "r2", 5)
    recorder.close()

    recorder = Recorder(Store(tmp_path / "s.db"), Limits(), hold_seconds=0, clock=clock)
    board = ReleaseBoard(recorder)
    board.declare("a", declared("r2", release_fingerprint="f2"))
    board.publish()
    assert revisions(samples(recorder, FIRST)) == {"r1": 1010, "r2": 1020}
    assert set(revisions(samples(recorder, INFO))) == {"r1", "r2"}
    assert revisions(samples(recorder, "prefix_cache_release_cold_window_seconds")) == {"r1": 900}
    assert revisions(samples(recorder, "prefix_cache_release_predicted_population_hit_ratio")) == {"r1": 0.46}
    assert samples(recorder, "prefix_cache_release_in_force") == {'source="a",template="t",template_revision="r2"': 1}


def test_traffic_of_a_revision_that_nobody_declared_has_a_start_but_no_pins() -> None:
    recorder = Recorder(Store(None), Limits(), hold_seconds=0, clock=Clock(1000))
    board = ReleaseBoard(recorder)
    board.declare("a", Releases())
    traffic(recorder, "r9", 5)
    board.publish()
    assert revisions(samples(recorder, FIRST)) == {"r9": 1000}
    assert samples(recorder, INFO) == samples(recorder, "prefix_cache_release_in_force") == {}


def test_an_unreadable_release_file_shows() -> None:
    recorder = Recorder(Store(None), Limits(), clock=Clock())
    ReleaseBoard(recorder).declare("a", declared("r1"), valid=False)
    assert samples(recorder, "prefix_cache_release_file_valid") == {'source="a"': 0}


def test_an_engine_and_a_log_of_one_name_each_say_their_own() -> None:
    recorder = Recorder(Store(None), Limits(), clock=Clock())
    board = ReleaseBoard(recorder)
    board.declare("a", declared("r1"), plane="engine", valid=True)
    board.declare("a", declared("r2"), plane="usage", valid=False)
    assert set(revisions(samples(recorder, "prefix_cache_release_in_force"))) == {"r1", "r2"}
    assert samples(recorder, "prefix_cache_release_file_valid") == {'source="a"': 0}
    board.declare("a", declared("r2"), plane="engine", valid=True)
    board.declare("a", declared("r2"), plane="usage", valid=True)
    assert set(revisions(samples(recorder, "prefix_cache_release_in_force"))) == {"r2"}
    assert samples(recorder, "prefix_cache_release_file_valid") == {'source="a"': 1}
