"""Which gains are believed, and which keep an interval out of both sides of a ratio."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.engine_target import Target, counted


def test_a_fall_of_cached_tokens_excludes_the_intervals_prompt_tokens():
    target = Target()
    target.page({"prompt_tokens_cached": 100, "prompt_tokens": 200})
    delta = target.page({"prompt_tokens_cached": 90, "prompt_tokens": 260})
    assert counted(delta, "prompt_tokens", "excluded_prompt_tokens") == {("excluded_prompt_tokens", "0"): 60}


@pytest.mark.parametrize("odd", ["NaN", "+Inf", "-Inf"])
def test_what_is_not_finite_is_an_anomaly_and_keeps_both_sides_out(odd):
    def page(target, prompt, cached):
        line = f'vllm:prompt_tokens_cached_total{{model_name="m",engine="0"}} {cached}\n'
        return target.page({"prompt_tokens": prompt}, without=["prompt_tokens_cached"], extra=line)

    target = Target()
    page(target, 100, 50)
    delta = page(target, 110, odd)
    assert (delta.anomalies, delta.withheld["cached_prompt_tokens"]) == ({"not_finite": 1}, "not_finite")
    assert counted(delta, "excluded_prompt_tokens") == {("excluded_prompt_tokens", "0"): 10}
    delta = page(target, 130, 60)
    assert counted(delta, "excluded_prompt_tokens", "cached_prompt_tokens") == {("excluded_prompt_tokens", "0"): 20}
    delta = page(target, 140, 65)
    assert counted(delta, "prompt_tokens", "cached_prompt_tokens") == {
        ("prompt_tokens", "0"): 10,
        ("cached_prompt_tokens", "0"): 5,
    }


@pytest.mark.parametrize(
    ("odd", "reason"), [(-1, "negative"), (-1e300, "negative"), (2.0**54, "too_large"), (1e300, "too_large")]
)
def test_what_no_counter_can_stand_at_is_an_anomaly_and_counts_nothing(odd, reason):
    target = Target()
    target.page({"prompt_tokens": 100})
    delta = target.page({"prompt_tokens": odd})
    assert (delta.anomalies, delta.withheld["prompt_tokens"]) == ({reason: 1}, reason)
    assert delta.withheld["cached_prompt_tokens"] == "prompt_tokens_unknown"
    target.page({"prompt_tokens": 120})
    assert counted(target.page({"prompt_tokens": 125}), "prompt_tokens") == {("prompt_tokens", "0"): 5}


def test_the_largest_number_of_tokens_that_a_float_knows():
    target = Target()
    target.page({"prompt_tokens": 2**53 - 1})
    assert counted(target.page({"prompt_tokens": 2**53}), "prompt_tokens") == {("prompt_tokens", "0"): 1}


def test_blocks_are_no_more_tokens_than_a_float_knows():
    target, info = Target("0.8.5"), {"block_size": "1e15", "num_gpu_blocks": "1"}
    target.page(info=info)
    delta = target.page({"gpu_prefix_cache_queries": 10, "prompt_tokens": 5}, info=info)
    assert (delta.withheld["lookup_tokens"], delta.anomalies) == ("too_large", {"too_large": 1})
    assert counted(delta, "generation_tokens", "prompt_tokens") == {("prompt_tokens", "0"): 5}


def test_tokens_are_whole_or_not_believed():
    target = Target()
    target.page({"prompt_tokens": 1})
    delta = target.page({"prompt_tokens": 2, "generation_tokens": 0.5})
    assert (delta.anomalies, delta.withheld["generation_tokens"]) == ({"not_whole": 1}, "not_whole")


def test_one_engine_that_preempts_is_excluded_alone():
    target = Target("0.9.2")
    target.page(engines=[0, 1])
    moved = {"prompt_tokens": 100, "prefix_cache_queries": 100, "prefix_cache_hits": 32, "num_preemptions@1": 2}
    delta = target.page(moved, engines=[0, 1])
    assert counted(delta, "prompt_tokens", "cached_prompt_tokens", "excluded_prompt_tokens") == {
        ("prompt_tokens", "0"): 100,
        ("cached_prompt_tokens", "0"): 32,
        ("excluded_prompt_tokens", "1"): 100,
    }


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 500), st.booleans()), min_size=1, max_size=8))
def test_both_sides_come_from_the_same_intervals(steps):
    """Prompt tokens are either beside cached ones or excluded, and never lost."""
    target, prompt, preempted, kept, excluded = Target("0.9.2"), 0, 0, 0, 0
    target.page()
    for tokens, preempt in steps:
        prompt, preempted = prompt + tokens, preempted + preempt
        values = {"prompt_tokens": prompt, "prefix_cache_queries": prompt, "num_preemptions": preempted}
        delta = target.page(values)
        kept += sum(counted(delta, "prompt_tokens").values())
        excluded += sum(counted(delta, "excluded_prompt_tokens").values())
        assert ("cached_prompt_tokens" in delta.withheld) == preempt
    assert kept == sum(tokens for tokens, preempt in steps if not preempt)
    assert kept + excluded == prompt
