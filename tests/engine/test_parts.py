"""Parts that exceed their wholes: carried over while the next page may explain them, withheld where it does not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefix_cache_exporter.engine.apply import apply_page
from prefix_cache_exporter.engine.maps import load_maps
from prefix_cache_exporter.engine.parts import PAIRS
from support.engine_source import Bench, recorded, release
from support.engine_target import Target, counted
from support.vllm_pages import vllm_page

LOOKUPS = ("lookup_tokens", "lookup_hit_tokens")
EXTERNAL = ("external_lookup_tokens", "external_lookup_hit_tokens")


def see(target, queries, hits, **options):
    return target.page({"prefix_cache_queries": queries, "prefix_cache_hits": hits}, **options)


def both(lookups, hits):
    return {("lookup_tokens", "0"): lookups, ("lookup_hit_tokens", "0"): hits}


def test_the_catalogue_names_them():
    assert PAIRS == (
        ("lookup_hit_tokens", "lookup_tokens"),
        ("external_lookup_hit_tokens", "external_lookup_tokens"),
    )


def test_hits_whose_lookups_come_with_the_next_page_are_counted_with_them():
    """The page was made between the two counters of one step, as a healthy server's may be."""
    target = Target()
    see(target, 1000, 100)
    torn = see(target, 1000, 484)
    assert (counted(torn, *LOOKUPS), torn.anomalies) == ({}, {})
    assert {name: torn.withheld[name] for name in LOOKUPS} == dict.fromkeys(LOOKUPS, "part_exceeds_whole")
    whole = see(target, 1600, 500)
    assert (counted(whole, *LOOKUPS), whole.anomalies) == (both(600, 400), {})
    assert "lookup_tokens" not in whole.withheld
    assert counted(see(target, 1610, 505), *LOOKUPS) == both(10, 5)


def test_more_hits_than_lookups_that_nothing_explains_are_withheld_on_both_sides():
    target = Target()
    see(target, 0, 0)
    first, second, third = (see(target, *values) for values in [(479, 4616), (679, 4716), (779, 4766)])
    assert [counted(delta, *LOOKUPS) for delta in (first, second, third)] == [{}, {}, both(100, 50)]
    assert [delta.anomalies for delta in (first, second, third)] == [{}, {"part_exceeds_whole": 1}, {}]
    assert second.withheld["lookup_hit_tokens"] == "part_exceeds_whole"


def test_other_measures_of_the_interval_stand():
    target = Target()
    target.page()
    values = {"prefix_cache_queries": 479, "prefix_cache_hits": 4616, "prompt_tokens": 479, "prompt_tokens_cached": 384}
    assert counted(target.page(values), "prompt_tokens", "cached_prompt_tokens") == {
        ("prompt_tokens", "0"): 479,
        ("cached_prompt_tokens", "0"): 384,
    }


@pytest.mark.parametrize("version", ["0.9.2", "0.12.0", "0.15.1"])
def test_cached_tokens_that_are_made_of_such_hits_are_excluded(version):
    target = Target(version)
    target.page()
    delta = target.page({"prefix_cache_queries": 479, "prefix_cache_hits": 4616, "prompt_tokens": 10000})
    assert delta.withheld["cached_prompt_tokens"] == "part_exceeds_whole"
    assert counted(delta, "prompt_tokens", "cached_prompt_tokens", "excluded_prompt_tokens") == {
        ("excluded_prompt_tokens", "0"): 10000
    }


def test_a_connector_that_had_more_than_it_was_asked_for():
    target = Target()
    target.page()
    values = {"external_prefix_cache_queries": 100, "external_prefix_cache_hits": 150, "prefix_cache_queries": 7}
    delta = target.page(values)
    assert counted(delta, *EXTERNAL, *LOOKUPS) == {("lookup_tokens", "0"): 7}
    assert {name: delta.withheld[name] for name in EXTERNAL} == dict.fromkeys(EXTERNAL, "part_exceeds_whole")


def test_each_rank_is_judged_alone():
    target = Target()
    target.page(engines=[0, 1])
    values = {"prefix_cache_queries": 50, "prefix_cache_hits@0": 20, "prefix_cache_hits@1": 60}
    assert counted(target.page(values, engines=[0, 1]), *LOOKUPS) == both(50, 20)
    values = {
        "prefix_cache_queries@0": 50,
        "prefix_cache_queries@1": 90,
        "prefix_cache_hits@0": 20,
        "prefix_cache_hits@1": 70,
    }
    assert counted(target.page(values, engines=[0, 1]), *LOOKUPS) == {
        ("lookup_tokens", "1"): 90,
        ("lookup_hit_tokens", "1"): 70,
    }


def test_a_restart_takes_along_what_would_have_explained_it():
    target = Target()
    see(target, 100, 50)
    see(target, 100, 90)
    delta = see(target, 500, 10, started=2000)
    assert (counted(delta, *LOOKUPS), delta.anomalies) == (both(500, 10), {"part_exceeds_whole": 1})


def test_so_does_an_engine_that_goes():
    target = Target()
    target.page({"prefix_cache_queries": 100, "prefix_cache_hits": 50}, engines=[0, 1])
    moved = {"prefix_cache_queries": 100, "prefix_cache_hits@0": 50, "prefix_cache_hits@1": 90}
    target.page(moved, engines=[0, 1])
    assert target.snapshot.carried == {("1", "m"): {"lookup_tokens": 0, "lookup_hit_tokens": 40}}
    delta = target.page(moved, engines=[0])
    assert (delta.anomalies, target.snapshot.carried) == ({"part_exceeds_whole": 1}, {})


def test_a_side_that_cannot_be_read_explains_nothing():
    target = Target()
    see(target, 100, 50)
    see(target, 100, 90)
    line = 'vllm:prefix_cache_queries_total{model_name="m",engine="0"} NaN\n'
    delta = target.page({"prefix_cache_hits": 95}, without=["prefix_cache_queries"], extra=line)
    assert delta.anomalies == {"not_finite": 1, "part_exceeds_whole": 1}
    assert target.snapshot.carried == {}


@pytest.mark.parametrize("odd", ["NaN", "+Inf", "-1", "1e22", "1250.5", "900"])
@pytest.mark.parametrize(("side", "other"), [LOOKUPS, LOOKUPS[::-1], EXTERNAL, EXTERNAL[::-1]])
def test_what_is_not_known_on_one_side_is_counted_on_neither(odd, side, other):
    """Else the next interval's hits stand against no lookups, or its lookups against no hits."""
    families = {
        "lookup_tokens": "prefix_cache_queries",
        "lookup_hit_tokens": "prefix_cache_hits",
        "external_lookup_tokens": "external_prefix_cache_queries",
        "external_lookup_hit_tokens": "external_prefix_cache_hits",
    }
    target = Target()
    target.page({families[side]: 1000, families[other]: 1000})
    values = {families[side]: 1250, families[other]: 1250}
    line = f'vllm:{families[side]}_total{{model_name="m",engine="0"}} {odd}\n'
    delta = target.page(values, without=[families[side]], extra=line)
    assert counted(delta, side, other) == {}
    assert delta.withheld[other] == f"{side}_unknown"
    assert side in delta.withheld


def test_hits_that_are_not_on_one_page_take_its_lookups_along():
    target = Target()
    see(target, 1000, 500)
    gone = see(target, 1100, 0, without=["prefix_cache_hits"])
    assert (counted(gone, *LOOKUPS), gone.withheld["lookup_tokens"]) == ({}, "lookup_hit_tokens_unknown")
    back = see(target, 1200, 600)
    assert (counted(back, *LOOKUPS), back.withheld["lookup_hit_tokens"]) == ({}, "no_baseline")
    assert counted(see(target, 1300, 650), *LOOKUPS) == both(100, 50)


def test_lookups_whose_hits_were_never_on_a_page_are_in_no_ratio_and_stand():
    target = Target()
    see(target, 1000, 0, without=["prefix_cache_hits"])
    assert counted(see(target, 1100, 0, without=["prefix_cache_hits"]), *LOOKUPS) == {("lookup_tokens", "0"): 100}


def test_a_page_that_counts_nothing_for_now_keeps_what_was_carried_over():
    """A fall that nothing explains: whether it was a restart shows in what follows."""
    target = Target()
    seen = [see(target, *values, started=None) for values in [(1000, 100), (1000, 484), (20, 4), (30, 8)]]
    assert [counted(delta, *LOOKUPS) for delta in seen] == [{}, {}, {}, both(30, 8)]
    assert [delta.anomalies for delta in seen] == [{}, {}, {}, {"part_exceeds_whole": 1}]


def test_two_pages_are_decided_at_once():
    before, after = (
        vllm_page("0.32.0", {"prefix_cache_queries": queries, "prefix_cache_hits": hits})
        for queries, hits in [(1000, 100), (1479, 4716)]
    )
    answer = apply_page(load_maps(), "0.32.0", after, before).as_json()
    assert {name: answer["withheld"][name] for name in LOOKUPS} == dict.fromkeys(LOOKUPS, "part_exceeds_whole")
    assert answer["anomalies"] == {"part_exceeds_whole": 1}
    assert answer["totals"].keys().isdisjoint(LOOKUPS)


def test_what_is_carried_over_a_release_belongs_to_both():
    def torn(page):
        """Its lookups as they were before the step."""
        lines = page.split(b"\n")
        return b"\n".join(
            line.rpartition(b" ")[0] + b" 474.0" if line.startswith(b"vllm:prefix_cache_queries_total") else line
            for line in lines
        )

    bench, steps = Bench(), recorded("0.32.0")
    bench.in_force = release("r1")
    bench.poll(steps["01_cold"])
    bench.poll(torn(steps["02_same"]))
    bench.in_force = release("r2")
    bench.poll(steps["02_same"])
    assert bench.total("lookup_tokens", template_revision="r2") is None
    assert bench.total("lookup_tokens", template_revision="mixed") == 474
    assert bench.total("lookup_hit_tokens", template_revision="mixed") == 384
    bench.poll(steps["03_same_prefix_new_user"])
    bench.poll(steps["04_early_change"])
    assert bench.total("lookup_tokens", template_revision="r2") == 479 + 475


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 100), st.booleans()), min_size=1, max_size=10))
def test_a_healthy_server_loses_nothing(steps):
    """However pages fall between a step's two counters, all is counted as soon as one falls between two steps."""
    target, queries, hits = Target(), 10, 5
    see(target, queries, hits)
    found = {"lookup_tokens": 0, "lookup_hit_tokens": 0}
    torn_before = False
    for looked_up, percent, torn in [*steps, (0, 0, False)]:
        between = torn and not torn_before  # two torn pages in a row are beyond what is forgiven
        hits += looked_up * percent // 100
        delta = see(target, queries, hits) if between else None
        queries += looked_up
        for one in filter(None, [delta, None if between else see(target, queries, hits)]):
            for (measure, _), amount in counted(one, *LOOKUPS).items():
                found[measure] += amount
        torn_before = between
    assert found == {"lookup_tokens": queries - 10, "lookup_hit_tokens": hits - 5}
