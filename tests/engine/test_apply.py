"""Two pages through one map: what is answered where the earlier one is of no use."""

from __future__ import annotations

import pytest

from prefix_cache_exporter.engine.apply import apply_page
from prefix_cache_exporter.engine.maps import load_maps
from support.vllm_pages import vllm_page

MAPS = load_maps()
COUNTERS = {"prompt_tokens", "cached_prompt_tokens", "lookup_tokens", "preemptions", "time_to_first_token_seconds"}


@pytest.mark.parametrize(
    ("previous", "reason"),
    [
        (vllm_page("0.10.2", {"prompt_tokens": 5}), "previous page: unexpected vllm:gpu_cache_usage_perc"),
        (b"go_goroutines 5\n", None),
    ],
)
def test_an_earlier_page_that_cannot_be_read_is_no_baseline(previous, reason):
    page = vllm_page("0.26.0", {"prompt_tokens": 100, "num_requests_running": 2})
    answer = apply_page(MAPS, "0.26.0", page, previous).as_json()
    assert {answer["withheld"].get(measure) for measure in COUNTERS} == {"no_baseline"}
    assert answer["totals"].keys().isdisjoint(COUNTERS)
    assert answer["excluded_prompt_tokens"] == {}
    assert answer["totals"]["running_requests"] == 2
    assert (answer["state"], reason in answer["reasons"]) == ("verified", reason is not None)


def test_an_earlier_page_of_the_same_release_needs_no_words():
    answer = apply_page(MAPS, "0.26.0", vllm_page("0.26.0", {"prompt_tokens": 100}), vllm_page("0.26.0")).as_json()
    assert (answer["totals"]["prompt_tokens"], answer["reasons"]) == (100, [])
