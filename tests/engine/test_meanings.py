"""Every change of meaning behind an unchanged name: what the page says, and what is made of it before and after."""

from __future__ import annotations

import pytest

from prefix_cache_exporter.engine.apply import apply_page
from prefix_cache_exporter.engine.maps import load_maps
from support.vllm_pages import as_openmetrics, releases, vllm_page

MAPS = load_maps()
HITS, QUERIES = "prefix_cache_hits", "prefix_cache_queries"


def apply(release, values=None, before=None, **options):
    previous = None if before is None else vllm_page(release, before, **options)
    return apply_page(MAPS, release, vllm_page(release, values, **options), previous).as_json()


def caveats(release, values=None, **options):
    return apply(release, values, **options)["caveats"]


@pytest.mark.parametrize(
    ("release", "tokens"), [("0.8.0", 160), ("0.8.3", 160), ("0.8.5", 160), ("0.9.0", 10), ("0.9.1", 10)]
)
def test_blocks_become_tokens_with_the_block_size(release, tokens):
    """https://github.com/vllm-project/vllm/pull/18003"""
    values = {"prompt_tokens": 200, "gpu_prefix_cache_queries": 12, "gpu_prefix_cache_hits": 10}
    answer = apply(release, values)
    assert answer["totals"]["lookup_hit_tokens"] == tokens
    assert answer["totals"]["cached_prompt_tokens"] == tokens
    assert answer["totals"]["lookup_tokens"] == tokens * 1.2
    assert ("whole_blocks_only" in answer["caveats"]) == (release < "0.9")
    assert answer["engines"]["0"]["measures"]["lookup_tokens"]["unit"] == "tokens"


@pytest.mark.parametrize("release", ["0.8.0", "0.8.5"])
@pytest.mark.parametrize("size", ["None", "", "auto"])
def test_blocks_stay_withheld_where_the_block_size_is_not_said(release, size):
    answer = apply(release, {"prompt_tokens": 7, "gpu_prefix_cache_hits": 10}, info={"block_size": size})
    assert {answer["withheld"][m] for m in ("lookup_tokens", "lookup_hit_tokens", "cached_prompt_tokens")} == {
        "block_size_unknown"
    }
    assert answer["excluded_prompt_tokens"] == {"block_size_unknown": 7}


def test_the_first_release_cannot_say_its_block_size():
    answer = apply("0.7.3", {"prompt_tokens": 7, "gpu_prefix_cache_hits": 10})
    assert answer["withheld"]["lookup_hit_tokens"] == "block_size_unknown"
    assert answer["withheld"]["preemptions"] == "not_exposed"


@pytest.mark.parametrize(
    ("release", "active"), [("0.8.0", True), ("0.8.2", True), ("0.8.3", True), ("0.8.4", True), ("0.9.0", False)]
)
def test_the_last_block_of_an_aligned_prompt(release, active):
    assert ("last_block_hits" in caveats(release)) == active


def test_the_last_block_is_left_out_on_another_side_in_each_release():
    told = [MAPS.resolve(version).dialects[-1].caveats["last_block_hits"].errs for version in ("0.8.2", "0.8.3")]
    told.append(MAPS.resolve("0.8.4").dialects[-1].caveats["last_block_hits"].affects)
    assert told == ["over", "under", ("lookup_tokens",)]


@pytest.mark.parametrize("release", ["0.8.2", "0.8.3"])
def test_an_engine_without_a_rank_is_rank_0(release):
    assert list(apply(release, {"prompt_tokens": 5})["engines"]) == ["0"]


@pytest.mark.parametrize(("release", "active"), [("0.8.3", True), ("0.9.2", True), ("0.10.0", False)])
def test_only_the_last_engine_is_on_the_page(release, active):
    """https://github.com/vllm-project/vllm/pull/21257"""
    assert ("last_engine_only" in caveats(release, engines=[1])) == active
    assert "last_engine_only" not in caveats(release, engines=[0])
    assert "last_engine_only" not in caveats(release, engines=[0, 1])


@pytest.mark.parametrize("release", releases()[1:])
def test_preempted_requests_count_again_until_0_11_0(release):
    """https://github.com/vllm-project/vllm/pull/25787"""
    before_fix = releases().index(release) <= releases().index("0.11.0")
    answer = apply(release, {"num_preemptions": 3, "prompt_tokens": 10}, {})
    assert ("preemption_recount" in answer["caveats"]) == before_fix
    assert (answer["withheld"].get("cached_prompt_tokens") == "preemption_recount") == before_fix
    assert answer["excluded_prompt_tokens"] == ({"preemption_recount": 10} if before_fix else {})


@pytest.mark.parametrize("release", releases()[releases().index("0.9.2") :])
def test_retries_count_again_until_0_26_0_and_spoil_cached_tokens_until_0_15_1(release):
    """https://github.com/vllm-project/vllm/pull/48860"""
    place = releases().index(release)
    moved = {"prompt_tokens": 100, QUERIES: 900, HITS: 50, "prompt_tokens_cached": 40}
    answer = apply(release, moved, {})
    retried, from_lookups = place <= releases().index("0.26.0"), place <= releases().index("0.15.1")
    assert ("lookups_exceed_prompt_tokens" in answer["caveats"]) == retried
    expected = None if from_lookups else 40
    assert answer["totals"].get("cached_prompt_tokens") == expected
    assert answer["totals"]["lookup_tokens"] == 900


def test_a_request_in_flight_explains_one_prompt_and_not_more():
    seen = {"prompt_tokens": 1000, "time_to_first_token_seconds": 10, "request_prompt_tokens": 10}
    in_flight = {**seen, "num_requests_running": 1}
    steady = {**in_flight, QUERIES: 1000, HITS: 500}
    for queries, excluded in ((1100, False), (1300, True)):
        answer = apply("0.12.0", {**steady, QUERIES: queries}, {})
        assert bool(answer["excluded_prompt_tokens"]) == excluded, queries


def test_one_request_may_have_been_aborted_unseen():
    seen = {"prompt_tokens": 1000, "time_to_first_token_seconds": 10, "request_prompt_tokens": 10, HITS: 500}
    assert apply("0.12.0", {**seen, QUERIES: 1100}, {})["excluded_prompt_tokens"] == {}
    answer = apply("0.12.0", {**seen, QUERIES: 1101}, {})
    assert answer["excluded_prompt_tokens"] == {"lookups_exceed_prompt_tokens": 1000}


def test_prompts_of_unknown_length_explain_nothing():
    moved = {"prompt_tokens": 1000, QUERIES: 1001, HITS: 500, "num_requests_running": 3}
    assert apply("0.12.0", moved, {})["excluded_prompt_tokens"] == {"lookups_exceed_prompt_tokens": 1000}


def test_before_the_first_token_everything_is_in_flight():
    answer = apply("0.12.0", {QUERIES: 5000, HITS: 100, "num_requests_running": 1}, {})
    assert "lookups_exceed_prompt_tokens" not in answer["caveats"]
    assert answer["totals"]["cached_prompt_tokens"] == 100


def test_the_longest_prompts_may_be_in_flight():
    edges = "".join(
        f'vllm:request_prompt_tokens_bucket{{engine="0",le="{edge}"}} {count}\n'
        for edge, count in (("10.0", 9), ("50000.0", 10), ("100000.0", 10), ("+Inf", 10))
    )
    rest = 'vllm:request_prompt_tokens_count{engine="0"} 10\nvllm:request_prompt_tokens_sum{engine="0"} 40000\n'

    def page(queries):
        values = {
            "prompt_tokens": 1000,
            "time_to_first_token_seconds": 10,
            "num_requests_running": 1,
            QUERIES: queries,
            HITS: 1,
        }
        return (
            vllm_page("0.12.0", values, without=["request_prompt_tokens"], extra=edges + rest)
            .replace(b',model_name="m"', b"")
            .replace(b'model_name="m",', b"")
        )

    for queries, excluded in ((51_000, False), (51_001, True)):
        answer = apply_page(MAPS, "0.12.0", page(queries)).as_json()
        assert bool(answer["excluded_prompt_tokens"]) == excluded, queries


def test_an_aborted_request_without_hits_takes_nothing_away():
    """Recorded from a real 0.12.0: an abort before the first token counts in look-ups only."""
    answer = apply("0.12.0", {QUERIES: 515}, {})
    assert answer["totals"]["cached_prompt_tokens"] == 0
    assert answer["caveats"] == ["lookups_exceed_prompt_tokens"]


@pytest.mark.parametrize("release", ["0.9.0", "0.9.2", "0.12.0"])
def test_more_cached_than_prompt_is_not_believed(release):
    hits = HITS if release != "0.9.0" else "gpu_prefix_cache_hits"
    answer = apply(release, {"prompt_tokens": 100, hits: 101}, {})
    assert answer["excluded_prompt_tokens"] == {"cached_exceeds_prompt_tokens": 100}


@pytest.mark.parametrize("release", ["0.16.0", "0.26.0", "0.33.0"])
def test_more_cached_than_prompt_is_not_believed_whatever_is_in_flight(release):
    answer = apply(release, {"prompt_tokens": 100, "prompt_tokens_cached": 101, "num_requests_running": 9}, {})
    assert answer["withheld"]["cached_prompt_tokens"] == "cached_exceeds_prompt_tokens"


@pytest.mark.parametrize(("release", "active"), [("0.8.0", False), ("0.9.0", True), ("0.12.0", True), ("0.33.0", True)])
def test_skipped_requests_are_in_no_lookup(release, active):
    """https://github.com/vllm-project/vllm/pull/25787"""
    answer = apply(release, {"prompt_tokens": 450}, {})
    assert ("skipped_lookups" in answer["caveats"]) == active
    assert "excluded_prompt_tokens" not in answer["totals"] or release == "0.8.0"


@pytest.mark.parametrize("release", ["0.9.0", "0.12.0", "0.33.0"])
def test_with_the_cache_off_nothing_skips_it(release):
    """Prompt tokens grow, and nothing is looked up: 0 cached of them is a number, and nothing is wrong with it."""
    answer = apply(release, {"prompt_tokens": 450}, {}, info={"enable_prefix_caching": "False"})
    assert (answer["caveats"], answer["excluded_prompt_tokens"]) == ([], {})
    totals = answer["totals"]
    assert (totals["prompt_tokens"], totals["cached_prompt_tokens"], totals["lookup_tokens"]) == (450, 0, 0)
    assert totals["prefix_caching_enabled"] == 0


@pytest.mark.parametrize(
    ("release", "active"), [("0.9.2", True), ("0.10.2", True), ("0.11.0", True), ("0.11.1", False)]
)
def test_processes_stand_beside_each_other(release, active):
    """https://github.com/vllm-project/vllm/pull/28792"""
    gauge = 'vllm:kv_cache_usage_perc{engine="0",model_name="m",pid="2"} 0.5\n'
    answer = apply(release, extra=gauge)
    assert answer["totals"]["kv_usage_ratio"] == 0.5
    assert ("pid_labels" in answer["caveats"]) == active


@pytest.mark.parametrize(
    ("release", "twice", "whole"),
    [
        ("0.11.1", True, True),
        ("0.11.2", True, True),
        ("0.12.0", False, True),
        ("0.15.1", False, True),
        ("0.16.0", False, False),
    ],
)
def test_denominators_of_external_lookups(release, twice, whole):
    """https://github.com/vllm-project/vllm/pull/28585, https://github.com/vllm-project/vllm/pull/30522"""
    found = caveats(release, {"external_prefix_cache_queries": 10})
    assert ("external_load_twice" in found) == twice
    assert ("external_lookups_include_local_hits" in found) == whole
    assert {"external_load_twice", "external_lookups_include_local_hits"}.isdisjoint(caveats(release))


@pytest.mark.parametrize(("release", "active"), [("0.15.1", False), ("0.16.0", True), ("0.33.0", True)])
def test_external_hits_count_before_the_load(release, active):
    assert ("external_hits_before_load" in caveats(release, {"external_prefix_cache_hits": 10})) == active


@pytest.mark.parametrize(("release", "active"), [("0.16.0", True), ("0.19.1", True), ("0.20.0", False)])
def test_sources_of_prompt_tokens_are_an_exact_partition_from_0_20_0_on(release, active):
    """https://github.com/vllm-project/vllm/issues/36755"""
    guessed = {"prompt_tokens": 100, "prompt_tokens_cached": 99, "prompt_tokens_by_source{local_compute}": 1}
    answer = apply(release, {**guessed, "prompt_tokens_recomputed": 1}, {})
    assert ("recomputed_guess" in answer["caveats"]) == active
    totals = answer["totals"]
    assert totals["prefill_computed_tokens"] + totals["cached_prompt_tokens"] == totals["prompt_tokens"]


@pytest.mark.parametrize(
    ("release", "active"), [("0.19.1", False), ("0.20.0", True), ("0.25.1", True), ("0.26.0", False)]
)
def test_a_second_prefill_overwrites_the_first(release, active):
    moved = {"prompt_tokens": 9, "prompt_tokens_cached": 4, "num_preemptions": 1}
    answer = apply(release, moved, {})
    assert ("overwritten_prefill" in answer["caveats"]) == active
    assert answer["totals"]["cached_prompt_tokens"] == 4


@pytest.mark.parametrize(
    ("release", "unit", "active"), [("0.25.1", "4", False), ("0.26.0", "4", True), ("0.26.0", "None", False)]
)
def test_hits_below_a_block(release, unit, active):
    assert ("sub_block_hits" in caveats(release, info={"prefix_match_unit": unit})) == active


@pytest.mark.parametrize(
    ("release", "id_"),
    [("0.18.0", "stale_block_size"), ("0.22.1", "stale_block_size"), ("0.23.0", "smallest_block_size")],
)
def test_block_sizes_of_hybrid_models(release, id_):
    """https://github.com/vllm-project/vllm/issues/42966, https://github.com/vllm-project/vllm/issues/51163"""
    assert id_ in caveats(release, info={"mamba_block_size": "784", "mamba_cache_mode": "align"})
    assert id_ not in caveats(release, info={"mamba_cache_mode": "none"})


def test_a_capacity_that_blocks_do_not_multiply_to():
    """https://github.com/vllm-project/vllm/issues/51163"""
    answer = apply("0.24.0", info={"block_size": "4", "num_gpu_blocks": "1000", "kv_cache_size_tokens": "9000"})
    assert answer["totals"]["capacity_tokens"] == 9000
    assert answer["caveats"] == ["smallest_block_size"]
    several = apply("0.24.0", info={"num_gpu_blocks": "2000"}, engines=[0, 1])
    assert several["caveats"] == []


@pytest.mark.parametrize(("release", "capacity"), [("0.9.0", 16000), ("0.23.0", 16000), ("0.24.0", 15000)])
def test_capacity_is_the_servers_and_never_added_up(release, capacity):
    answer = apply(release, info={"kv_cache_size_tokens": "15000"}, engines=[0, 1])
    assert answer["totals"]["capacity_tokens"] == capacity


@pytest.mark.parametrize("release", ["0.8.0", "0.8.5"])
def test_blocks_are_not_counted_yet(release):
    """https://github.com/vllm-project/vllm/issues/15755"""
    assert apply(release, info={"num_gpu_blocks": "None"})["withheld"]["capacity_tokens"] == "not_reported"


@pytest.mark.parametrize("release", ["0.12.0", "0.16.0", "0.31.0", "0.33.0"])
def test_a_decode_node_transfers_and_does_not_reuse(release):
    """https://github.com/vllm-project/vllm/issues/47136"""
    moved = {"prompt_tokens": 100, "external_prefix_cache_hits": 95, "prompt_tokens_cached": 95}
    assert "decode_node" in caveats(release, moved)
    assert "decode_node" not in caveats(release, {**moved, "external_prefix_cache_hits": 10})


def test_a_decode_nodes_usage_says_something_else_from_0_31_0_on():
    told = [MAPS.resolve(v).dialects[-1].caveats["decode_node"].counts for v in ("0.30.0", "0.31.0")]
    assert ["usage" in sentence for sentence in told] == [False, True]


@pytest.mark.parametrize(("release", "active"), [("0.30.0", False), ("0.31.0", True), ("0.33.0", True)])
def test_skipped_requests_are_external_misses(release, active):
    """https://github.com/vllm-project/vllm/issues/57596"""
    found = caveats(release, {QUERIES: 100, HITS: 40, "external_prefix_cache_queries": 70})
    assert ("external_misses_of_skipped" in found) == active
    assert "external_misses_of_skipped" not in caveats(
        release, {QUERIES: 100, HITS: 40, "external_prefix_cache_queries": 60}
    )


def test_queue_time_was_observed_at_scheduling():
    assert "observed_at_scheduling" in caveats("0.7.3")
    assert "observed_at_scheduling" not in caveats("0.8.0")


@pytest.mark.parametrize(
    ("release", "expected"), [("0.12.0", None), ("0.13.0", 60), ("0.15.1", 60), ("0.16.0", 55), ("0.33.0", 55)]
)
def test_computed_prompt_tokens(release, expected):
    values = {"request_prefill_kv_computed_tokens_sum": 60, "prompt_tokens_by_source{local_compute}": 55}
    assert apply(release, values)["totals"].get("prefill_computed_tokens") == expected


@pytest.mark.parametrize("release", ["0.8.2", "0.9.1", "0.10.2"])
def test_v0_counts_prompts_again_and_reports_no_cached_token(release):
    values = {"prompt_tokens": 500, "num_preemptions": 2, "gpu_prefix_cache_hit_rate": 0.5}
    answer = apply(release, values, {}, dialect="v0")
    reason = "gauge_only" if release == "0.8.2" else "not_exposed"
    assert answer["dialect"] == "v0"
    assert answer["withheld"]["cached_prompt_tokens"] == reason
    assert answer["excluded_prompt_tokens"] == {reason: 500}
    assert answer["caveats"] == ["reprefill_counts_again"]


def test_v0_hides_its_gauge_behind_a_flag():
    flag = "--show-hidden-metrics-for-version"
    assert apply("0.8.5", dialect="v0")["withheld"]["reported_block_hit_ratio"] == f"gated:{flag}"
    shown = apply("0.8.5", {"gpu_prefix_cache_hit_rate": 0.25}, dialect="v0", gates=[flag])
    assert (shown["state"], shown["totals"]["reported_block_hit_ratio"]) == ("verified", 0.25)


def test_a_real_0_9_2_with_a_full_cache():
    """Six requests at once and seven preemptions: 225 times more hits than there were prompt tokens."""
    moved = {
        "prompt_tokens": 793,
        QUERIES: 316_807,
        HITS: 178_688,
        "gpu_prefix_cache_queries": 316_807,
        "gpu_prefix_cache_hits": 178_688,
        "num_preemptions": 7,
        "generation_tokens": 3600,
    }
    again = {name: 2 * value for name, value in moved.items()} | {QUERIES: 316_807 + 331_539, HITS: 178_688 + 184_576}
    for before, after, queries, hits in (({}, moved, 316_807, 178_688), (moved, again, 331_539, 184_576)):
        answer = apply("0.9.2", after, before)
        totals = answer["totals"]
        assert answer["state"] == "verified"
        assert (totals["lookup_tokens"], totals["lookup_hit_tokens"]) == (queries, hits)
        assert "cached_prompt_tokens" not in totals
        assert answer["withheld"]["cached_prompt_tokens"] == "preemption_recount"
        assert answer["excluded_prompt_tokens"] == {"preemption_recount": 793}
        assert (totals["prompt_tokens"], totals["excluded_prompt_tokens"]) == (793, 793)
        assert answer["caveats"][0] == "preemption_recount"


def test_the_rust_front_end_shares_the_engines_meanings():
    def page(values):
        return as_openmetrics(vllm_page("0.25.0", values), without=["vllm:cache_config_info", "process_"])

    moved = {"prompt_tokens": 10, QUERIES: 90, "prompt_tokens_cached": 4, "num_preemptions": 1}
    answer = apply_page(MAPS, "0.25.0", page(moved), page({})).as_json()
    assert (answer["dialect"], answer["state"]) == ("rust", "unverified")
    assert answer["caveats"] == ["lookups_exceed_prompt_tokens", "overwritten_prefill"]
    assert answer["totals"]["cached_prompt_tokens"] == 4


@pytest.mark.parametrize(("release", "told"), [("0.31.0", "not_exposed"), ("0.32.0", None), ("0.33.0", None)])
def test_tiers(release, told):
    answer = apply(release, {"prompt_tokens_cached_by_source{device}": 5, "prompt_tokens_cached_by_source{disk}": 2})
    assert answer["withheld"].get("cached_tokens_by_tier") == told
    if told is None:
        shown = answer["engines"]["0"]["measures"]["cached_tokens_by_tier"]
        assert (shown["value"], shown["by"]["device"], shown["by"]["disk"]) == (7, 5, 2)
