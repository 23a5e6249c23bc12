"""Pages of Ray's metrics agent: renamed, several replicas on one page, and without what is still 0.

vLLM's wrapper of Ray's counters leaves out increments of 0, so such a series first appears with its first token:
https://github.com/vllm-project/vllm/blob/v0.16.0/vllm/v1/metrics/ray_wrappers.py.
"""

from __future__ import annotations

import re

import pytest

from prefix_cache_exporter.engine.apply import apply_page
from prefix_cache_exporter.engine.maps import load_maps
from support.vllm_pages import releases, vllm_page

MAPS = load_maps()
SERVED = {
    "prompt_tokens": 100,
    "prompt_tokens_by_source{local_compute}": 100,
    "prefix_cache_queries": 100,
    "gpu_prefix_cache_queries": 100,
    "generation_tokens": 5,
    "request_success{stop}": 1,
    **dict.fromkeys(
        (
            "iteration_tokens_total",
            "request_generation_tokens",
            "request_prefill_kv_computed_tokens",
            "request_num_preemptions",
            "request_time_per_output_token_seconds",
            "inter_token_latency_seconds",
            "time_to_first_token_seconds",
        ),
        1,
    ),
}
"""What one request without a hit moves."""


def ray_page(release, values, *, worker="w1"):
    """A page without counters and histograms at 0, and without what declares them."""
    lines = vllm_page(release, values, prefix="ray_vllm_", started=None).decode().splitlines()
    types = {line.split()[2]: line.split()[3] for line in lines if line.startswith("# TYPE")}

    def family(line):
        name = line.split()[2] if line.startswith("#") else line.partition("{")[0]
        return name if name in types else re.sub("_(bucket|sum|count)$", "", name)

    shown = {
        family(line)
        for line in lines
        if not line.startswith("#") and (types[family(line)] == "gauge" or not line.endswith(" 0.0"))
    }
    kept = [line for line in lines if family(line) in shown and not line.endswith("} 0.0")]
    gauges = [line for line in lines if line.endswith("} 0.0") and types[family(line)] == "gauge"]
    text = "\n".join([*kept, *gauges])
    return (text.replace("{", f'{{ReplicaId="r-{worker}",WorkerId="{worker}",') + "\n").encode()


def apply(release, body, previous=None):
    return apply_page(MAPS, release, body, previous).as_json()


@pytest.mark.parametrize("release", releases()[releases().index("0.9.2") :])
def test_what_has_not_been_counted_is_0(release):
    """Until 0.15.1 cached tokens are local and external hits, and without a connector the latter never appear."""
    body = ray_page(release, SERVED)
    assert b"hits" not in body
    answer = apply(release, body)
    totals = answer["totals"]
    assert (answer["name_style"], answer["state"]) == ("ray", "verified")
    assert (totals["prompt_tokens"], totals["cached_prompt_tokens"], totals["lookup_hit_tokens"]) == (100, 0, 0)
    assert answer["excluded_prompt_tokens"] == {}
    assert totals["preemptions"] == 0


@pytest.mark.parametrize("release", ["0.12.0", "0.15.1"])
def test_local_hits_are_all_there_is_without_a_connector(release):
    body = ray_page(release, {**SERVED, "prefix_cache_hits": 32})
    assert b"external" not in body
    assert apply(release, body)["totals"]["cached_prompt_tokens"] == 32


@pytest.mark.parametrize("release", ["0.12.0", "0.16.0", "0.28.0"])
def test_the_first_hits_count_from_there(release):
    before = ray_page(release, SERVED)
    more = {"prompt_tokens": 200, "prefix_cache_queries": 200, "prefix_cache_hits": 64, "prompt_tokens_cached": 64}
    answer = apply(release, ray_page(release, {**SERVED, **more}), before)
    totals = answer["totals"]
    assert (totals["cached_prompt_tokens"], totals["prompt_tokens"], totals["lookup_hit_tokens"]) == (64, 100, 64)
    assert answer["excluded_prompt_tokens"] == {}


def test_an_excerpt_says_nothing_by_what_it_leaves_out():
    answer = apply("0.12.0", b'ray_vllm_prefix_cache_hits_total{engine="0"} 5\n')
    assert answer["withheld"]["cached_prompt_tokens"] == "no_series"
    assert answer["withheld"]["prompt_tokens"] == "no_series"


def test_neither_does_a_page_of_an_older_release():
    """The agent's address has no `/version`: what configuration pins may be out of date."""
    answer = apply("0.16.0", ray_page("0.11.2", {**SERVED, "prefix_cache_hits": 32}))
    assert answer["withheld"]["cached_prompt_tokens"] == "no_series"
    assert answer["excluded_prompt_tokens"] == {"no_series": 100}


def test_a_number_that_cannot_be_is_not_0():
    body = ray_page("0.12.0", {**SERVED, "prefix_cache_hits": -3})
    assert apply("0.12.0", body)["withheld"]["lookup_hit_tokens"] == "negative"


def test_replicas_are_added_and_restart_alone():
    served = {**SERVED, "prefix_cache_hits": 10}
    twice = {**SERVED, "prompt_tokens": 700, "prefix_cache_queries": 700, "prefix_cache_hits": 80}
    before = ray_page("0.12.0", twice) + ray_page("0.12.0", twice, worker="w2")
    after = ray_page("0.12.0", {**twice, "prompt_tokens": 750}) + ray_page("0.12.0", served, worker="w2")
    answer = apply("0.12.0", after, before)
    assert (answer["totals"]["prompt_tokens"], answer["restarts"]) == (150, 1)
    assert list(answer["engines"]) == ["0"]
