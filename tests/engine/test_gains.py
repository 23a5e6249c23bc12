"""What each group of counters gained: restarts, new ranks, late families, other maps."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefix_cache_exporter.engine.deltas import deltas
from support.engine_target import Target, counted, lookups


def test_a_later_process_start_is_a_restart_even_where_nothing_fell():
    target = Target()
    target.page({"prompt_tokens": 100}, started=1000)
    delta = target.page({"prompt_tokens": 150}, started=2000)
    assert (delta.restarts, counted(delta, "prompt_tokens")) == (1, {("prompt_tokens", "0"): 150})


def test_an_earlier_process_start_is_another_process():
    target = Target()
    target.page({"prompt_tokens": 100}, started=2000)
    delta = target.page({"prompt_tokens": 150}, started=1000)
    assert (delta.anomalies, counted(delta, "prompt_tokens")) == ({"unstable_source": 1}, {})
    assert delta.withheld["prompt_tokens"] == "unstable_source"
    for _ in range(2):
        assert target.page({"prompt_tokens": 160}, started=1000).anomalies == {"unstable_source": 1}
    assert target.page({"prompt_tokens": 170}, started=1000).anomalies == {}
    delta = target.page({"prompt_tokens": 180}, started=1000)
    assert counted(delta, "prompt_tokens") == {("prompt_tokens", "0"): 10}


def test_counters_made_anew_in_a_living_process_are_a_restart():
    """Elastic expert parallelism makes the loggers anew: only `_created` tells."""
    made = 'vllm:prompt_tokens_created{{model_name="m",engine="0"}} {}\n'
    target = Target()
    target.page({"prompt_tokens": 100}, extra=made.format(1500.5))
    assert target.page({"prompt_tokens": 110}, extra=made.format(1500.5)).restarts == 0
    delta = target.page({"prompt_tokens": 130}, extra=made.format(1800.5))
    assert (delta.restarts, counted(delta, "prompt_tokens")) == (1, {("prompt_tokens", "0"): 130})


def test_a_fall_in_one_living_process_is_an_anomaly_and_never_a_negative_increase():
    target = Target()
    target.page({"lookup": 0, "prefix_cache_queries": 100, "prompt_tokens": 10})
    delta = target.page({"prefix_cache_queries": 60, "prompt_tokens": 20})
    assert delta.anomalies == {"negative_increase": 1}
    assert delta.withheld["lookup_tokens"] == "negative_increase"
    assert counted(delta, "lookup_tokens", "prompt_tokens") == {("prompt_tokens", "0"): 10}
    delta = target.page({"prefix_cache_queries": 75, "prompt_tokens": 20})
    assert (delta.anomalies, counted(delta, "lookup_tokens")) == ({}, {("lookup_tokens", "0"): 15})


def test_without_start_times_a_fall_is_a_restart_as_soon_as_the_next_reading_shows_it():
    target = Target()
    target.see(lookups(9000))
    assert (target.see(lookups(2000)).restarts, target.snapshot.groups.popitem()[1].doubt) == (0, "fell")
    target = Target()
    seen = [target.see(lookups(n)) for n in (9000, 2000, 2100, 2150)]
    assert [delta.restarts for delta in seen] == [0, 0, 1, 0]
    assert [counted(delta, "lookup_tokens") for delta in seen[1:]] == [
        {},
        {("lookup_tokens", "0"): 2100},
        {("lookup_tokens", "0"): 50},
    ]


def test_a_restart_that_soon_exceeds_its_former_values_is_counted_whole():
    target = Target()
    seen = [target.see(lookups(n)) for n in (100, 20, 500, 600)]
    assert sum(delta.restarts for delta in seen) == 1
    assert [counted(delta, "lookup_tokens") for delta in seen] == [{}, {}, {}, {("lookup_tokens", "0"): 600}]


def test_ranks_restart_each_for_itself():
    target = Target()
    seen = [target.see(lookups(*n)) for n in ((100, 900), (150, 20), (160, 30))]
    assert counted(seen[1], "lookup_tokens") == {("lookup_tokens", "0"): 50}
    assert counted(seen[2], "lookup_tokens") == {("lookup_tokens", "0"): 10, ("lookup_tokens", "1"): 30}


def test_a_fall_of_one_counter_restarts_all_of_its_engine():
    def page(queries, hits):
        return lookups(queries, extra=f'vllm:prefix_cache_hits_total{{engine="0"}} {hits}\n')

    target = Target()
    target.see(page(100, 5))
    target.see(page(20, 8))
    delta = target.see(page(30, 9))
    assert counted(delta, "lookup_tokens", "lookup_hit_tokens") == {
        ("lookup_tokens", "0"): 30,
        ("lookup_hit_tokens", "0"): 9,
    }


def test_two_pages_decide_a_fall_at_once():
    target = Target()
    _, snapshot = deltas(None, target.reading(lookups(100, 50)))
    delta, _ = deltas(snapshot, target.reading(lookups(30, 60)), final=True)
    assert counted(delta, "lookup_tokens") == {("lookup_tokens", "0"): 30, ("lookup_tokens", "1"): 10}
    assert delta.restarts == 1


def test_a_new_rank_counts_from_zero():
    target = Target()
    target.see(lookups(100))
    assert counted(target.see(lookups(100, 40)), "lookup_tokens") == {("lookup_tokens", "1"): 40}


def test_a_new_value_of_a_label_counts_from_zero():
    target = Target()
    target.page({"request_success{stop}": 4})
    more = 'vllm:request_success_total{model_name="m",engine="0",finished_reason="repetition"} 3\n'
    delta = target.page({"request_success{stop}": 5}, extra=more)
    found = {i.by: i.amount for i in delta.ledger() if i.measure == "finished_requests"}
    assert found == {"stop": 1, "length": 0, "abort": 0, "repetition": 3}


def test_a_family_that_comes_late_has_no_baseline():
    target = Target()
    target.page(without=["prompt_tokens_cached"])
    delta = target.page({"prompt_tokens_cached": 70, "prompt_tokens": 100})
    assert delta.withheld["cached_prompt_tokens"] == "no_baseline"
    assert counted(delta, "cached_prompt_tokens", "prompt_tokens", "excluded_prompt_tokens") == {
        ("excluded_prompt_tokens", "0"): 100
    }
    delta = target.page({"prompt_tokens_cached": 75, "prompt_tokens": 110})
    assert counted(delta, "cached_prompt_tokens", "prompt_tokens") == {
        ("cached_prompt_tokens", "0"): 5,
        ("prompt_tokens", "0"): 10,
    }


def test_a_series_that_first_appears_when_it_is_counted_counts_from_zero():
    target = Target("0.32.0")
    target.page({"generation_tokens": 1}, prefix="ray_vllm_", without=["prompt_tokens_cached", "prompt_tokens"])
    values = {"prompt_tokens_cached": 70, "prompt_tokens": 100, "generation_tokens": 1}
    delta = target.page(values, prefix="ray_vllm_")
    assert counted(delta, "cached_prompt_tokens", "prompt_tokens") == {
        ("cached_prompt_tokens", "0"): 70,
        ("prompt_tokens", "0"): 100,
    }


@pytest.mark.parametrize("started", [float("nan"), float("inf")])
def test_a_start_time_that_is_no_moment_explains_nothing(started):
    target = Target()
    target.page({"prompt_tokens": 100}, started=started)
    assert counted(target.page({"prompt_tokens": 20}, started=started), "prompt_tokens") == {}
    delta = target.page({"prompt_tokens": 30}, started=started)
    assert (delta.restarts, counted(delta, "prompt_tokens")) == (1, {("prompt_tokens", "0"): 30})


def test_another_map_without_a_restart_has_no_common_baseline():
    target = Target("0.8.5")
    target.page({"gpu_prefix_cache_queries": 10, "generation_tokens": 4})
    target.version = "0.9.0"
    delta = target.page({"gpu_prefix_cache_queries": 12, "generation_tokens": 9})
    assert delta.withheld["lookup_tokens"] == "no_baseline"
    assert counted(delta, "generation_tokens") == {("generation_tokens", "0"): 5}


def test_another_map_with_a_restart_counts_from_zero():
    target = Target("0.8.5")
    target.page({"gpu_prefix_cache_queries": 10}, started=1000)
    target.version = "0.9.0"
    delta = target.page({"gpu_prefix_cache_queries": 120}, started=2000)
    assert counted(delta, "lookup_tokens") == {("lookup_tokens", "0"): 120}


def test_groups_that_went_are_remembered_within_bounds():
    target = Target()
    target.see(lookups(*range(400)))
    target.see(lookups(5))
    assert len(target.snapshot.groups) == 257
    assert counted(target.see(lookups(*[5] * 399, 500)), "lookup_tokens")["lookup_tokens", "399"] == 101


ENGINES = st.lists(st.integers(0, 10**9), min_size=1, max_size=4)


@settings(max_examples=60, deadline=None)
@given(st.lists(ENGINES, min_size=2, max_size=8))
def test_increases_are_never_negative_whatever_comes(rows):
    target = Target()
    for row in rows:
        delta = target.see(lookups(*row))
        assert all(increase.amount >= 0 for increase in delta.ledger())


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000), st.booleans()), min_size=1, max_size=10))
def test_what_two_engines_counted_is_what_they_counted_between_restarts(steps):
    """Truth: every engine's own increments after the first page, restarts told by the start time."""
    target, totals, started, truth, found = Target(), [0, 0], 1000.0, 0, 0
    target.page({"prompt_tokens": 0}, engines=[0, 1], started=started)
    for first, second, restart in steps:
        if restart:
            started, totals = started + 50, [0, 0]
        totals = [totals[0] + first, totals[1] + second]
        truth += first + second
        values = {"prompt_tokens@0": totals[0], "prompt_tokens@1": totals[1]}
        delta = target.page(values, engines=[0, 1], started=started)
        found += sum(counted(delta, "prompt_tokens").values())
    assert found == truth
