"""Public bug reports about engine metrics, each as a page with the right answer. Inputs stand in `tests/cases`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from prefix_cache_exporter.engine.apply import apply_page
from prefix_cache_exporter.engine.deltas import deltas
from prefix_cache_exporter.engine.evaluate import Evaluator
from prefix_cache_exporter.engine.maps import load_maps
from prefix_cache_exporter.engine.page import PageError, read_page
from prefix_cache_exporter.engine.plan import select_plan

CASES = Path(__file__).parents[1] / "cases"
MAPS = load_maps()


def body(name):
    return (CASES / name).read_bytes()


def apply(version, name, previous=None, **options):
    earlier = None if previous is None else body(previous)
    return apply_page(MAPS, version, body(name), earlier, **options).as_json()


def follow(version, pages):
    """One delta per page, as a poller sees them."""
    resolved, evaluator, snapshot, found = MAPS.resolve(version), Evaluator(), None, []
    for text in pages:
        page = read_page(text, None, resolved.wanted)
        delta, snapshot = deltas(snapshot, evaluator.read(select_plan(resolved, page), page))
        found.append(delta)
    return found


@pytest.mark.parametrize("version", ["0.7.3", "0.8.2", "0.8.5", "0.9.0"])
def test_b01_the_v0_gauge_is_a_ratio_without_sides(version):
    """https://github.com/vllm-project/vllm/pull/15458"""
    answer = apply(version, "B01_v0.prom")
    assert answer["dialect"] == "v0"
    assert answer["totals"] == {"reported_block_hit_ratio": 0.42}
    for measure in ("cached_prompt_tokens", "lookup_tokens", "lookup_hit_tokens"):
        assert answer["withheld"][measure] == "gauge_only"


def test_b01_minus_one_is_disabled_and_no_ratio():
    answer = apply("0.8.2", "B01_v0_disabled.prom")
    assert answer["totals"] == {}
    assert answer["withheld"]["reported_block_hit_ratio"] == "disabled"
    assert answer["withheld"]["lookup_tokens"] == "gauge_only"


@pytest.mark.parametrize("version", ["0.9.2", "0.10.0", "0.12.0", "0.20.2", "0.33.0"])
@pytest.mark.parametrize(("name", "hits", "queries"), [("B01_v1.prom", 3072, 4096), ("B01_v1_idle.prom", 0, 0)])
def test_b01_v1_counters_have_both_sides(version, name, hits, queries):
    totals = apply(version, name)["totals"]
    assert (totals["lookup_hit_tokens"], totals["lookup_tokens"]) == (hits, queries)


@pytest.mark.parametrize("version", ["0.9.2", "0.10.0", "0.10.2", "0.11.0", "0.11.2"])
def test_b02_old_and_new_names_count_once(version):
    """https://github.com/vllm-project/production-stack/issues/617"""
    totals = apply(version, "B02_both.prom")["totals"]
    assert (totals["lookup_hit_tokens"], totals["lookup_tokens"]) == (600, 1000)


def test_b02_the_series_goes_on_when_the_old_name_vanishes():
    both = body("B02_both.prom").decode()
    new_only = "".join(line + "\n" for line in both.splitlines() if "gpu_" not in line).replace(" 1000.0", " 1500.0")
    _, delta = follow("0.11.0", [both.encode(), new_only.encode()])
    assert [(i.measure, i.amount) for i in delta.ledger() if i.measure == "lookup_tokens"] == [("lookup_tokens", 500)]


@pytest.mark.parametrize("version", ["0.9.2", "0.10.2", "0.11.0"])
def test_b04_a_resumed_request_counts_again(version):
    """https://github.com/vllm-project/vllm/issues/25780"""
    answer = apply(version, "B04_t1.prom", "B04_t0.prom")
    assert answer["totals"] == {"lookup_tokens": 10000, "lookup_hit_tokens": 3200, "preemptions": 57}
    assert answer["caveats"] == ["preemption_recount"]
    assert answer["withheld"]["cached_prompt_tokens"] == "preemption_recount"


@pytest.mark.parametrize("version", ["0.11.1", "0.12.0", "0.32.0"])
def test_b04_is_over_from_the_fix_on(version):
    answer = apply(version, "B04_t1.prom", "B04_t0.prom")
    assert "preemption_recount" not in answer["caveats"]
    assert answer["totals"]["lookup_hit_tokens"] == 3200


@pytest.mark.parametrize("version", ["0.9.2", "0.12.0", "0.15.1", "0.20.2", "0.26.0"])
def test_b05_deferred_requests_are_looked_up_again(version):
    """https://github.com/vllm-project/vllm/issues/43736"""
    answer = apply(version, "B05_t1.prom", "B05_t0.prom")
    totals = answer["totals"]
    assert (totals["lookup_tokens"], totals["prompt_tokens"]) == (50000, 10000)
    assert "lookups_exceed_prompt_tokens" in answer["caveats"]
    assert "cached_prompt_tokens" in answer["withheld"]
    assert sum(answer["excluded_prompt_tokens"].values()) == 10000


@pytest.mark.parametrize("version", ["0.27.0", "0.33.0"])
def test_b05_is_over_from_counting_at_admission_on(version):
    assert "lookups_exceed_prompt_tokens" not in apply(version, "B05_t1.prom", "B05_t0.prom")["caveats"]


@pytest.mark.parametrize(
    ("version", "name", "lookups"), [("0.12.0", "B06_before.prom", 1000), ("0.16.0", "B06_after.prom", 400)]
)
def test_b06_three_ratios_with_their_own_denominators(version, name, lookups):
    """https://github.com/vllm-project/vllm/pull/30522"""
    answer = apply(version, name)
    totals = answer["totals"]
    assert totals["lookup_hit_tokens"] / totals["lookup_tokens"] == 0.6
    assert totals["external_lookup_hit_tokens"] / totals["external_lookup_tokens"] == 200 / lookups
    combined = totals["lookup_hit_tokens"] + totals["external_lookup_hit_tokens"]
    assert combined / totals["prompt_tokens"] == 0.8
    assert ("external_lookups_include_local_hits" in answer["caveats"]) == (lookups == 1000)


def test_b06_cached_tokens_are_local_and_external_hits():
    answer = apply("0.15.1", "B06_before.prom")
    assert answer["totals"]["cached_prompt_tokens"] == 800
    family = answer["engines"]["0"]["measures"]["cached_prompt_tokens"]["family"]
    assert family == "vllm:prefix_cache_hits + vllm:external_prefix_cache_hits"


@pytest.mark.parametrize("version", ["0.20.2", "0.32.0"])
def test_b07_a_zero_that_is_right(version):
    """https://github.com/vllm-project/vllm/issues/54607"""
    answer = apply(version, "B07_hybrid.prom")
    totals = answer["totals"]
    assert (totals["lookup_hit_tokens"], totals["lookup_tokens"], totals["block_size_tokens"]) == (0, 24000, 784)
    assert list(answer["engines"]) == ["0"]
    assert answer["engines"]["0"]["model"] == "org/hybrid"
    assert totals["finished_requests"] == 100


def test_b08_counters_that_nobody_moves_give_no_lookups_but_a_denominator_of_their_own():
    """https://github.com/vllm-project/vllm-ascend/issues/15744"""
    totals = apply("0.12.0", "B08_engine.prom")["totals"]
    assert (totals["lookup_tokens"], totals["prompt_tokens"]) == (0, 27285)


@pytest.mark.parametrize("version", ["0.9.2", "0.10.2", "0.11.0"])
def test_b10_processes_are_one_engine(version):
    """https://github.com/vllm-project/vllm/pull/28792"""
    answer = apply(version, "B10_pids.prom")
    assert answer["totals"] == {"kv_usage_ratio": 0.653}
    assert len(answer["engines"]) == 1
    assert answer["caveats"] == ["pid_labels"]


def test_b10_a_counter_between_two_levels_is_an_unstable_source():
    """https://github.com/kserve/kserve/issues/2979"""
    levels = json.loads(body("B10_alternating.json"))
    pages = [f'vllm:prefix_cache_queries_total{{engine="0"}} {level["queries"]}\n'.encode() for level in levels]
    found = follow("0.12.0", pages)
    assert sum(delta.restarts for delta in found) == 0
    assert found[-1].anomalies == {"unstable_source": 1}
    assert found[-1].withheld["lookup_tokens"] == "unstable_source"
    assert [increase for delta in found for increase in delta.ledger()] == []


def test_b11_engines_are_added_before_dividing():
    """https://github.com/kubernetes-sigs/gateway-api-inference-extension/issues/2950"""
    answer = apply("0.12.0", "B11_dp.prom")
    totals = answer["totals"]
    assert (totals["lookup_hit_tokens"], totals["lookup_tokens"]) == (9000, 10100)
    assert answer["engines"]["1"]["measures"]["lookup_tokens"]["value"] == 100


@pytest.mark.parametrize("turn", [0, 1, 2])
def test_b12_states_are_told_by_label_in_any_order(turn):
    """https://github.com/vllm-project/aibrix/issues/2287"""
    head, *lines = body("B12_sleep.prom").decode().splitlines()
    text = "\n".join([head, *lines[turn:], *lines[:turn]]) + "\n"
    totals = apply_page(MAPS, "0.32.0", text.encode()).as_json()["totals"]
    assert totals["sleep_state"] == {"awake": 1, "weights_offloaded": 0, "discard_all": 0}


@pytest.mark.parametrize(
    "content_type",
    [
        "application/openmetrics-text; version=1.0.0; charset=utf-8",
        "Application/OpenMetrics-Text;version=1.0.0",
        "text/plain; version=0.0.4",
        None,
    ],
)
@pytest.mark.parametrize("version", ["0.22.0", "0.28.0", "0.33.0"])
def test_b13_the_rust_front_end_answers_openmetrics(version, content_type):
    """https://github.com/gpustack/gpustack/issues/6215"""
    answer = apply(version, "B13_rust.om", content_type=content_type)
    assert (answer["dialect"], answer["state"]) == ("rust", "unverified")
    totals = answer["totals"]
    assert (totals["lookup_tokens"], totals["lookup_hit_tokens"], totals["kv_usage_ratio"]) == (4096, 3072, 0.25)
    assert answer["withheld"]["block_size_tokens"] == "not_exposed"


def test_b14_a_name_that_is_not_on_the_page_is_missing_and_never_zero():
    """https://github.com/llm-d/llm-d-autoscaling/issues/1526"""
    answer = apply("0.12.0", "B08_engine.prom")
    assert answer["withheld"]["generation_tokens"] == "missing"
    assert "generation_tokens" not in answer["totals"]
    assert answer["state"] == "mismatch"
    assert "missing vllm:generation_tokens" in answer["reasons"]


@pytest.mark.parametrize("version", ["0.9.2", "0.10.2", "0.11.0"])
def test_b15_prompt_tokens_include_the_cached_ones(version):
    """https://github.com/vllm-project/vllm/pull/56923"""
    totals = apply(version, "B15_prompt.prom")["totals"]
    assert (totals["cached_prompt_tokens"], totals["prompt_tokens"]) == (304, 624)
    assert totals["prompt_tokens"] - totals["cached_prompt_tokens"] == 320


@pytest.mark.parametrize("version", ["0.16.0", "0.18.1", "0.19.1"])
def test_b16_more_external_than_cached_tokens_is_an_anomaly(version):
    """https://github.com/LMCache/LMCache/issues/2912"""
    record = json.loads(body("B16_rec.jsonl"))

    def page(prompt, cached, external):
        return f"""\
vllm:prompt_tokens_total{{engine="0"}} {prompt}
vllm:prompt_tokens_cached_total{{engine="0"}} {cached}
vllm:prompt_tokens_by_source_total{{engine="0",source="external_kv_transfer"}} {external}
vllm:prompt_tokens_by_source_total{{engine="0",source="local_compute"}} {prompt - cached}
""".encode()

    moved = (record["prompt_len"], record["num_cached_tokens"], record["num_external_computed_tokens"])
    _, delta, after = follow(version, [page(0, 0, 0), page(*moved), page(*(value + 5 for value in moved))])
    assert delta.anomalies == {"negative_local_hit": 1}
    counted = {increase.measure: increase for increase in delta.ledger()}
    assert "cached_prompt_tokens" not in counted
    assert counted["excluded_prompt_tokens"][3:] == ("negative_local_hit", "", 17050)
    assert {i.measure: i.amount for i in after.ledger()}["cached_prompt_tokens"] == 5


def test_b49_a_cut_body_is_discarded_whole():
    """https://github.com/vllm-project/vllm/issues/49983"""
    with pytest.raises(PageError) as caught:
        apply("0.12.0", "B49_cut.prom")
    assert caught.value.reason == "truncated"


def test_b51_interleaved_families_are_one_each():
    """https://github.com/prometheus/client_python/issues/461"""
    page = read_page(body("B51_interleaved.prom"), None, {"test_a", "test_b"})
    assert {name: len(family.samples) for name, family in page.families.items()} == {"test_a": 2, "test_b": 2}


def test_b52_a_returning_rank_goes_on_where_it_was():
    """The ledger's side of the case is in `tests/test_recorder.py`; here a series leaves the page and comes back."""

    def page(*tokens):
        return "".join(
            f'vllm:prompt_tokens_total{{engine="{rank}"}} {count}\n' for rank, count in enumerate(tokens)
        ).encode()

    *_, gone, back = follow("0.12.0", [page(100, 100), page(100), page(150, 150)])
    assert [increase.amount for increase in gone.ledger()] == [0]
    assert [increase.amount for increase in back.ledger()] == [50, 50]


def test_b58_a_share_is_never_added_up():
    """https://github.com/vllm-project/production-stack/pull/989"""
    assert apply("0.12.0", "B58_pods.prom")["totals"] == {"kv_usage_ratio": 0.4}


def test_b59_a_page_with_its_own_and_rays_names_is_counted_once():
    """https://github.com/vllm-project/vllm/issues/30007"""
    answer = apply("0.12.0", "B59_names.prom")
    assert answer["totals"]["lookup_tokens"] == 100
    assert answer["engines"]["0"]["model"] == "deepseek-long"
    assert answer["name_style"] == "native"


def test_b59_rays_names_are_read_as_vllms():
    only_ray = "".join(line + "\n" for line in body("B59_names.prom").decode().splitlines() if line.startswith("ray"))
    answer = apply_page(MAPS, "0.12.0", only_ray.encode()).as_json()
    assert (answer["name_style"], answer["totals"]["lookup_tokens"]) == ("ray_colon", 100)
