from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from prefix_cache_exporter import measures
from prefix_cache_exporter.labels import Limits
from prefix_cache_exporter.ledger import InvalidAmountError
from prefix_cache_exporter.recorder import Change, Recorder
from prefix_cache_exporter.state import Store
from support.clock import Clock
from support.page import page, samples

if TYPE_CHECKING:
    from pathlib import Path

PROMPT = measures.ENGINE["prompt_tokens"]
CACHED = measures.ENGINE["cached_prompt_tokens"]
TTFT = measures.ENGINE["time_to_first_token_seconds"]
COST = measures.USAGE["input_cost"]
USED = measures.USAGE["requests"]
UP = measures.ENGINE["up"]
R1 = {"source": "a", "provider": "vllm", "model": "m", "template": "t", "template_revision": "r1"}
R1_TEXT = 'engine="",model="m",provider="vllm",source="a",template="t",template_revision="r1"'


def one(family: measures.Family, labels: dict[str, str], amount: float, part: str = "") -> Change:
    change = Change()
    change.add(family, labels, amount, part)
    return change


@pytest.fixture
def clock() -> Clock:
    return Clock()


def recorder(clock: Clock, path: Path | None = None, **settings: float) -> Recorder:
    return Recorder(Store(path), Limits(), clock=clock, **{"hold_seconds": 30.0, "expire_seconds": 3600.0, **settings})


def shown(rec: Recorder, family: measures.Family = PROMPT) -> list[float]:
    return list(samples(rec, family.series_name).values())


def test_a_new_label_set_stands_at_zero_before_its_value_shows(clock: Clock) -> None:
    rec = recorder(clock)
    rec.apply(one(PROMPT, R1, 900))
    rec.commit()
    assert samples(rec, "prefix_cache_engine_prompt_tokens_total") == {R1_TEXT: 0}
    clock.advance(29.9)
    assert shown(rec) == [0]
    clock.advance(0.1)
    assert shown(rec) == [900]


def test_a_scrape_interval_longer_than_the_hold_still_sees_the_zero(clock: Clock) -> None:
    rec = recorder(clock)
    clock.advance(1)
    rec.apply(one(PROMPT, R1, 900))
    rec.commit()
    clock.advance(60)
    assert shown(rec) == [0]
    clock.advance(60)
    assert shown(rec) == [900]


def test_nothing_shows_before_it_is_committed(clock: Clock) -> None:
    rec = recorder(clock, hold_seconds=0)
    rec.apply(one(PROMPT, R1, 1))
    assert shown(rec) == []
    rec.commit()
    rec.apply(one(PROMPT, R1, 5))
    assert shown(rec) == [1]
    rec.commit()
    assert shown(rec) == [6]


def test_an_amount_of_zero_makes_the_series_appear(clock: Clock) -> None:
    rec = recorder(clock, hold_seconds=0)
    rec.apply(one(CACHED, R1, 0))
    rec.commit()
    assert shown(rec, CACHED) == [0]


@pytest.mark.parametrize("amount", [-1, float("nan"), float("inf")])
def test_an_impossible_amount_moves_nothing_of_its_change(clock: Clock, amount: float) -> None:
    rec = recorder(clock, hold_seconds=0)
    change = one(PROMPT, R1, 5)
    change.add(CACHED, R1, amount)
    change.cursor("engine", "a", b"1")
    with pytest.raises(
        InvalidAmountError, match=r"cached_prompt_tokens: got .*, expected a finite amount of at least 0"
    ):
        rec.apply(change)
    rec.commit()
    assert shown(rec) == []
    assert rec.cursors("engine") == {}


def test_counters_and_positions_outlive_the_process_together(clock: Clock, tmp_path: Path) -> None:
    state = tmp_path / "state.db"
    first = recorder(clock, state, hold_seconds=0)
    change = one(PROMPT, R1, 10**17 + 1)  # beyond what a float can tell apart
    change.cursor("log", "x", b"offset 1")
    change.cursor("log", "y", b"offset 2")
    first.apply(change)
    first.commit()
    late = one(PROMPT, R1, 7)
    late.cursor("log", "x", b"offset 9")
    late.cursor("log", "y", None)
    first.apply(late)  # applied, never committed: lost as a whole

    second = recorder(clock, state, hold_seconds=0)
    assert second.cursors("log") == {"x": b"offset 1", "y": b"offset 2"}
    assert [row.parts for row in second.exposed() if row.family is PROMPT] == [{"": 10**17 + 1}]

    second.apply(late)
    second.close()
    third = recorder(clock, state, hold_seconds=0)
    assert third.cursors("log") == {"x": b"offset 9"}
    assert [row.parts for row in third.exposed() if row.family is PROMPT] == [{"": 10**17 + 8}]


def test_the_hold_goes_on_after_a_restart(clock: Clock, tmp_path: Path) -> None:
    first = recorder(clock, tmp_path / "state.db")
    first.apply(one(PROMPT, R1, 900))
    first.close()
    clock.advance(10)
    second = recorder(clock, tmp_path / "state.db")
    assert shown(second) == [0]
    clock.advance(20)
    assert shown(second) == [900]


def test_a_clock_that_is_set_back_takes_back_nothing_that_was_shown(clock: Clock, tmp_path: Path) -> None:
    first = recorder(clock, tmp_path / "state.db")
    first.apply(one(PROMPT, R1, 5))
    first.commit()
    clock.advance(100)
    assert shown(first) == [5]
    clock.advance(-900)
    assert shown(first) == [5]
    first.close()
    assert shown(recorder(clock, tmp_path / "state.db")) == [5]


def test_a_clock_that_is_set_back_during_a_hold_begins_it_anew(clock: Clock) -> None:
    rec = recorder(clock)
    rec.apply(one(PROMPT, R1, 5))
    rec.commit()
    assert shown(rec) == [0]
    clock.advance(-900)
    assert shown(rec) == [0]
    clock.advance(29)
    assert shown(rec) == [0]
    clock.advance(1)
    assert shown(rec) == [5]


def test_a_scrape_before_the_clock_was_set_back_has_seen_no_later_series(clock: Clock) -> None:
    rec = recorder(clock)
    shown(rec)
    clock.advance(-900)
    rec.apply(one(PROMPT, R1, 5))
    rec.commit()
    clock.advance(40)
    assert shown(rec) == [0]  # nobody saw the zero before
    clock.advance(30)
    assert shown(rec) == [5]


def test_b52_a_revision_that_returns_resumes_its_total_and_shows_it_first(clock: Clock) -> None:
    rec = recorder(clock, hold_seconds=30, expire_seconds=3600)
    rec.apply(one(PROMPT, R1, 100))
    rec.commit()
    clock.advance(60)
    assert shown(rec) == [100]
    clock.advance(7200)
    assert shown(rec) == []  # withdrawn
    rec.apply(one(PROMPT, R1, 50))
    rec.commit()
    assert shown(rec) == [100]  # the base first
    clock.advance(30)
    assert shown(rec) == [150]  # nothing lost


def test_a_revision_is_not_withdrawn_before_its_last_change_was_scraped(clock: Clock) -> None:
    rec = recorder(clock, expire_seconds=3600)
    rec.apply(one(PROMPT, R1, 100))
    rec.commit()
    clock.advance(7200)
    assert shown(rec) == [100]
    assert shown(rec) == []


def test_a_rare_series_stays_while_its_revision_lives(clock: Clock) -> None:
    rec = recorder(clock, hold_seconds=0, expire_seconds=3600)
    rec.apply(one(measures.ENGINE["preemptions"], R1, 1))
    for _ in range(4):
        rec.apply(one(PROMPT, R1, 10))
        rec.commit()
        clock.advance(1800)
        page(rec)
    assert shown(rec, measures.ENGINE["preemptions"]) == [1]


def test_polls_without_traffic_do_not_keep_a_revision_alive(clock: Clock) -> None:
    rec = recorder(clock, hold_seconds=0, expire_seconds=3600)
    rec.apply(one(PROMPT, R1, 10))
    rec.commit()
    page(rec)
    clock.advance(1)
    page(rec)
    clock.advance(3600)
    rec.apply(one(PROMPT, R1, 0))
    rec.commit()
    assert shown(rec) == []


def test_first_traffic_is_the_first_request_not_the_first_poll(clock: Clock) -> None:
    rec = recorder(clock)
    rec.apply(one(PROMPT, R1, 0))
    clock.advance(5)
    rec.apply(one(PROMPT, R1, 3))
    clock.advance(5)
    rec.apply(one(PROMPT, R1, 3))
    assert [(name, seen.first_traffic) for name, seen in rec.releases()] == [(("a", "vllm", "m", "t", "r1"), 1005.0)]


def test_histograms_keep_cumulative_buckets_and_sum(clock: Clock) -> None:
    rec = recorder(clock, hold_seconds=0)
    change = Change()
    for seconds in (0.25, 0.5, 3):
        change.observe(TTFT, R1, seconds, (0.5, 1.0))
    rec.apply(change)
    rec.commit()
    buckets = samples(rec, "prefix_cache_engine_time_to_first_token_seconds_bucket")
    assert {text.split('le="')[1].split('"')[0]: count for text, count in buckets.items()} == {
        "0.5": 2,
        "1.0": 2,
        "+Inf": 3,
    }
    assert list(samples(rec, "prefix_cache_engine_time_to_first_token_seconds_sum").values()) == [3.75]


def test_other_buckets_after_an_upgrade_stay_cumulative(clock: Clock) -> None:
    rec = recorder(clock, hold_seconds=0)
    change = Change()
    for part, amount in {"0.5": 3, "2.0": 5, "+Inf": 6, "sum": 9.5}.items():
        change.add(TTFT, R1, amount, part)
    rec.apply(change)
    change = Change()
    for part, amount in {"1.0": 10, "2.0": 12, "+Inf": 12, "sum": 8.0}.items():
        change.add(TTFT, R1, amount, part)
    rec.apply(change)
    rec.commit()
    (row,) = [row for row in rec.exposed() if row.family is TTFT]
    assert row.parts == {"0.5": 3, "1.0": 13, "2.0": 17, "+Inf": 18, "sum": 17.5}


def test_money_is_kept_whole_and_shown_in_units(clock: Clock) -> None:
    rec = recorder(clock, hold_seconds=0)
    for _ in range(10):
        rec.apply(one(COST, {"source": "gw", "currency": "USD", "component": "read"}, 75_000))
    rec.commit()
    assert shown(rec, COST) == [7.5e-7]


def test_b48_beyond_the_bound_series_share_other_and_sums_stay_exact(clock: Clock, tmp_path: Path) -> None:
    limits = Limits(labels={"namespace": 1000})
    rec = Recorder(Store(tmp_path / "s.db"), limits, hold_seconds=0, clock=clock)
    for number in range(5000):
        rec.apply(one(USED, {"source": "gw", "namespace": f"user-{number}"}, 10))
    rec.close()
    again = Recorder(Store(tmp_path / "s.db"), limits, hold_seconds=0, clock=clock)
    for number in reversed(range(5000)):
        again.apply(one(USED, {"source": "gw", "namespace": f"user-{number}"}, 1))
    again.commit()
    found = samples(again, USED.series_name)
    assert len(found) == 1001
    assert sum(found.values()) == 55_000
    assert {value for text, value in found.items() if 'namespace="other"' not in text} == {11}
    assert samples(again, "prefix_cache_exporter_label_overflow_total") == {'label="namespace"': 4000}


def test_a_family_beyond_its_bound_folds_new_series_into_other(clock: Clock) -> None:
    rec = Recorder(Store(None), Limits(series=2), hold_seconds=0, clock=clock)
    for template in ("t1", "t2", "t3", "t4"):
        rec.apply(one(PROMPT, {"source": "a", "provider": "vllm", "model": "m", "template": template}, 10))
    rec.commit()
    found = samples(rec, PROMPT.series_name)
    assert sorted(found.values()) == [10, 10, 20]
    assert 'engine="",model="other",provider="vllm",source="a",template="other",template_revision=""' in found
    assert samples(rec, "prefix_cache_exporter_series_overflow_total") == {f'family="{PROMPT.name}"': 2}


def test_gauges_are_set_replaced_within_their_scope_and_dropped(clock: Clock) -> None:
    rec, caveat = recorder(clock), measures.ENGINE["caveat"]
    rec.replace_gauges(caveat, {"source": "a"}, [({"caveat": "x"}, 1), ({"caveat": "y"}, 1)])
    rec.replace_gauges(caveat, {"source": "b"}, [({"caveat": "x"}, 1)])
    rec.replace_gauges(caveat, {"source": "a"}, [({"caveat": "z"}, 1)])
    assert set(samples(rec, caveat.name)) == {'caveat="z",source="a"', 'caveat="x",source="b"'}
    rec.set_gauge(UP, {"source": "a"}, 1)
    rec.drop_gauges(caveat, source="b")
    rec.drop_gauges(UP, source="b")
    assert set(samples(rec, caveat.name)) == {'caveat="z",source="a"'}
    assert samples(rec, UP.name) == {'source="a"': 1}


def test_a_disk_that_refuses_is_counted_shown_past_and_tried_again(clock: Clock, tmp_path: Path) -> None:
    class Full(Store):
        full = True

        def write(self, *arguments: object) -> None:
            if self.full:
                raise sqlite3.OperationalError("database or disk is full")
            super().write(*arguments)

    store = Full(tmp_path / "state.db")
    rec = Recorder(store, Limits(), hold_seconds=0, clock=clock)
    change = one(PROMPT, R1, 5)
    change.cursor("log", "x", b"5")
    rec.apply(change)
    assert rec.commit() is False
    assert rec.commit() is False
    assert shown(rec) == [5]
    assert list(samples(rec, "prefix_cache_exporter_state_write_failures_total").values()) == [2]
    assert "state_last_write" not in page(rec)
    store.full = False
    assert rec.commit() is True
    assert list(samples(rec, "prefix_cache_exporter_state_last_write_timestamp_seconds").values()) == [1000]
    assert recorder(clock, tmp_path / "state.db").cursors("log") == {"x": b"5"}


def test_a_commit_with_nothing_to_write_writes_nothing(clock: Clock) -> None:
    rec = recorder(clock)
    assert rec.commit() is True
    assert list(samples(rec, "prefix_cache_exporter_state_writes_total").values()) == [0]


def test_families_stand_in_the_catalogues_order(clock: Clock) -> None:
    rec = recorder(clock)
    rec.set_gauge(UP, {"source": "a"}, 1)
    rec.apply(one(USED, {"source": "gw"}, 1))
    rec.apply(one(PROMPT, R1, 1))
    rec.commit()
    names = [line.split()[2] for line in page(rec).splitlines() if line.startswith("# TYPE")]
    assert names == sorted(names, key=[family.series_name for family in measures.FAMILIES.values()].index)
