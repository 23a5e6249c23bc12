"""What was counted between two readings."""

from __future__ import annotations

from prefix_cache_exporter.engine.delta import Increase
from prefix_cache_exporter.engine.deltas import deltas, since_start
from prefix_cache_exporter.engine.reading import unknown_reading
from support.engine_target import Target, counted
from support.vllm_pages import vllm_page


def test_the_first_reading_counts_nothing():
    delta = Target().page({"prompt_tokens": 100})
    assert (delta.counted, list(delta.ledger())) == (False, [])


def test_increases_are_whole_numbers_of_the_measures_own_unit():
    target = Target("0.8.5")
    target.page({"gpu_prefix_cache_queries": 10})
    delta = target.page({"gpu_prefix_cache_queries": 13, "prompt_tokens": 50})
    assert Increase("lookup_tokens", "0", "m", "", "", 48) in list(delta.ledger())
    assert all(isinstance(i.amount, int) or i.part == "sum" for i in delta.ledger())


def test_histograms_pass_with_their_own_buckets():
    target = Target()
    target.page({"time_to_first_token_seconds": 2, "time_to_first_token_seconds_sum": 1.5})
    delta = target.page({"time_to_first_token_seconds": 5, "time_to_first_token_seconds_sum": 2.25})
    parts = {i.part: i.amount for i in delta.ledger() if i.measure == "time_to_first_token_seconds"}
    assert parts == {"100.0": 3, "1000.0": 3, "+Inf": 3, "sum": 0.75}


def test_a_page_that_cannot_be_used_leaves_the_last_one_standing():
    target = Target()
    target.page({"prompt_tokens": 100})
    before = target.snapshot
    assert target.see(vllm_page("0.12.0", {"prompt_tokens": 300})).withheld["prompt_tokens"] == "mismatch"
    delta, snapshot = deltas(before, unknown_reading("version_mismatch"))
    assert (delta.withheld["prompt_tokens"], snapshot) == ("version_mismatch", before)
    assert target.snapshot == before
    assert counted(target.page({"prompt_tokens": 130}), "prompt_tokens") == {("prompt_tokens", "0"): 30}


def test_since_start_is_one_interval():
    delta = since_start(Target("0.9.2").reading(vllm_page("0.9.2", {"prompt_tokens": 10, "num_preemptions": 1})))
    assert counted(delta, "excluded_prompt_tokens") == {("excluded_prompt_tokens", "0"): 10}
