"""What appears on the page of a process that was watched before: new, or old under another name."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.engine_source import Bench, recorded
from support.engine_target import Target, counted, lookups
from support.vllm_pages import registered

BOTH = ("prompt_tokens", "lookup_tokens")


def made(moments, model="m", engine="0"):
    """Start times of counters, by family."""
    return "".join(
        f'vllm:{family}_created{{model_name="{model}",engine="{engine}"}} {moment}\n'
        for family, moment in moments.items()
    )


def tokens(prompt, queries=None):
    return {"prompt_tokens": prompt, "prefix_cache_queries": prompt if queries is None else queries}


STARTS = {"prompt_tokens": 1003.25, "prefix_cache_queries": 1003.125}


def named(target, model, prompt, starts=STARTS):
    return target.page(tokens(prompt), model=model, extra=made(starts, model))


def test_a_model_that_is_renamed_goes_on_where_it_was():
    """One process, and the very counters: what they had counted before was counted before."""
    target = Target()
    named(target, "org/base", 948)
    delta = named(target, "team/base", 1427)
    assert counted(delta, *BOTH) == {("prompt_tokens", "0"): 479, ("lookup_tokens", "0"): 479}
    assert {increase.model for increase in delta.ledger()} == {"team/base"}
    assert (delta.anomalies, delta.restarts) == ({}, 0)
    assert counted(named(target, "org/base", 1500), *BOTH) == {("prompt_tokens", "0"): 73, ("lookup_tokens", "0"): 73}


def test_ranks_that_are_renamed_together_are_told_apart():
    target = Target()
    first, second = {"prompt_tokens": 1003.25}, {"prompt_tokens": 1003.5}

    def page(model, left, right):
        extra = made(first, model, "0") + made(second, model, "1")
        return target.page(
            {"prompt_tokens@0": left, "prompt_tokens@1": right}, model=model, engines=[0, 1], extra=extra
        )

    page("a", 100, 900)
    delta = page("b", 950, 1000)
    assert counted(delta, "prompt_tokens") == {("prompt_tokens", "0"): 850, ("prompt_tokens", "1"): 100}


def test_counters_made_at_one_moment_cannot_be_told_apart():
    target = Target()

    def page(model, left, right):
        extra = made({"prompt_tokens": 1003.0}, model, "0") + made({"prompt_tokens": 1003.0}, model, "1")
        return target.page(
            {"prompt_tokens@0": left, "prompt_tokens@1": right}, model=model, engines=[0, 1], extra=extra
        )

    page("a", 100, 200)
    delta = page("b", 300, 400)
    assert (counted(delta, "prompt_tokens"), delta.anomalies["not_new"]) == ({}, 2)
    assert delta.withheld["prompt_tokens"] == "not_new"
    assert counted(page("b", 310, 400), "prompt_tokens") == {("prompt_tokens", "0"): 10}


def test_without_start_times_of_counters_a_renamed_model_has_nothing_to_count_from():
    target = Target()
    target.page(tokens(948), model="a")
    delta = target.page(tokens(1427), model="b")
    assert (delta.anomalies, delta.withheld["prompt_tokens"]) == ({"not_new": 1}, "not_new")
    assert counted(delta, *BOTH) == {}
    assert counted(target.page(tokens(1500), model="b"), "prompt_tokens") == {("prompt_tokens", "0"): 73}


def test_what_comes_back_under_its_old_name_is_not_counted_twice():
    target = Target()
    seen = [target.page(tokens(n), model=model) for model, n in [("a", 948), ("b", 1427), ("b", 1500), ("a", 1600)]]
    assert [counted(delta, "prompt_tokens") for delta in seen] == [{}, {}, {("prompt_tokens", "0"): 73}, {}]
    assert seen[-1].withheld["prompt_tokens"] == "not_new"
    assert counted(target.page(tokens(1610), model="a"), "prompt_tokens") == {("prompt_tokens", "0"): 10}


def test_another_model_in_another_process_is_new():
    target = Target()
    target.page(tokens(948), model="a", started=1000)
    delta = target.page(tokens(1427), model="b", started=2000)
    assert (counted(delta, "prompt_tokens"), delta.restarts) == ({("prompt_tokens", "0"): 1427}, 1)


def test_another_model_in_an_older_process_is_not_new():
    target = Target()
    target.page(tokens(948), model="a", started=2000)
    delta = target.page(tokens(1427), model="b", started=1000)
    assert (counted(delta, "prompt_tokens"), delta.withheld["prompt_tokens"]) == ({}, "not_new")


def test_a_rank_whose_counters_were_made_since_is_new():
    """Elastic expert parallelism adds ranks to a living server."""
    target = Target()
    target.page(tokens(100), extra=made(STARTS))
    later = {family: moment + 600 for family, moment in STARTS.items()}
    values = {"prompt_tokens@0": 120, "prompt_tokens@1": 40}
    delta = target.page(values, engines=[0, 1], extra=made(STARTS) + made(later, engine="1"))
    assert counted(delta, "prompt_tokens") == {("prompt_tokens", "0"): 20, ("prompt_tokens", "1"): 40}


def test_a_rank_that_was_kept_from_the_page_is_not_new():
    target = Target()
    target.page(tokens(100), extra=made(STARTS))
    values = {"prompt_tokens@0": 120, "prompt_tokens@1": 9000}
    delta = target.page(values, engines=[0, 1], extra=made(STARTS) + made(STARTS, engine="1"))
    assert counted(delta, "prompt_tokens") == {("prompt_tokens", "0"): 20}
    assert delta.engines["1", "m"].withheld["prompt_tokens"] == "not_new"


def test_the_engine_makes_its_ranks_at_its_start():
    """With neither start time nor anything that went: V1 still makes none later, so the rank was there."""
    target = Target()
    target.page(tokens(100, 0))
    delta = target.page({"prompt_tokens@0": 120, "prompt_tokens@1": 9000}, engines=[0, 1])
    assert counted(delta, "prompt_tokens") == {("prompt_tokens", "0"): 20}
    assert delta.anomalies == {"not_new": 1}


def test_a_v0_engine_that_first_counts_has_counted_only_since():
    """Its process is older than the last page, and there was nothing on it that could have counted."""
    target = Target("0.7.3", dialect="v0")
    families = registered("0.7.3", "v0").values()
    counters = [one.family.removeprefix("vllm:") for one in families if one.type in ("counter", "histogram")]
    target.page(dialect="v0", without=counters)
    delta = target.page({"generation_tokens": 30}, dialect="v0", without=set(counters) - {"generation_tokens"})
    assert (counted(delta, "generation_tokens"), delta.anomalies) == ({("generation_tokens", "0"): 30}, {})
    declared = "# HELP vllm:generation_tokens_total Number of generation tokens processed.\n"
    declared += "# TYPE vllm:generation_tokens_total counter\n"
    target = Target("0.7.3", dialect="v0")
    target.page(dialect="v0", without=counters, extra=declared)
    delta = target.page({"generation_tokens": 30}, dialect="v0", without=set(counters) - {"generation_tokens"})
    assert (counted(delta, "generation_tokens"), delta.anomalies) == ({("generation_tokens", "0"): 30}, {})


def test_a_replica_that_ray_shows_when_it_first_counts_has_counted_only_since():
    target = Target()
    target.page(tokens(100), prefix="ray_vllm_")
    values = {**tokens(120), "prompt_tokens@1": 40}
    delta = target.page(values, prefix="ray_vllm_", engines=[0, 1])
    assert counted(delta, "prompt_tokens") == {("prompt_tokens", "0"): 20, ("prompt_tokens", "1"): 40}


@pytest.mark.parametrize(
    ("before", "after", "expected", "why"),
    [
        ((100, None), (None, 400), {}, "not_new"),  # it may be the same engine
        ((100, None), (None, 40), {("lookup_tokens", "1"): 40}, None),  # no counter falls
        ((0, None), (None, 40), {("lookup_tokens", "1"): 40}, None),  # it is all the same which
        ((100, None), (100, 400), {("lookup_tokens", "1"): 400}, None),  # nothing went
    ],
)
def test_without_any_start_time_what_went_is_all_there_is_to_tell_by(before, after, expected, why):
    target = Target()
    target.see(lookups(*before))
    delta = target.see(lookups(*after))
    assert (counted(delta, "lookup_tokens"), delta.withheld.get("lookup_tokens")) == (expected, why)


def finished(**reasons):
    return "".join(
        f'vllm:request_success_total{{model_name="m",engine="0",finished_reason="{reason}"}} {count}\n'
        for reason, count in reasons.items()
    )


def finished_made(**reasons):
    return finished(**reasons).replace("_total{", "_created{")


def reasons_of(delta):
    return {i.by: i.amount for i in delta.ledger() if i.measure == "finished_requests"}


def page_of(target, values, moments=None):
    extra = finished(**values) + (finished_made(**moments) if moments else "")
    return target.page(tokens(0), without=["request_success"], extra=extra)


def test_a_value_of_a_label_that_is_renamed_goes_on_where_it_was():
    target = Target()
    page_of(target, {"stop": 40, "length": 7}, {"stop": 1003.5, "length": 1003.6})
    delta = page_of(target, {"end": 43, "length": 7}, {"end": 1003.5, "length": 1003.6})
    assert (reasons_of(delta), delta.anomalies) == ({"end": 3, "length": 0}, {})
    assert reasons_of(page_of(target, {"stop": 45, "length": 7}, {"stop": 1003.5, "length": 1003.6}))["stop"] == 2


def test_without_start_times_a_renamed_value_is_withheld():
    target = Target()
    page_of(target, {"stop": 40, "length": 7})
    delta = page_of(target, {"end": 43, "length": 7})
    assert (reasons_of(delta), delta.withheld["finished_requests"]) == ({}, "not_new")
    assert reasons_of(page_of(target, {"end": 44, "length": 7})) == {"end": 1, "length": 0}


@pytest.mark.parametrize(("moment", "expected"), [(1900.0, {"stop": 1, "repetition": 3}), (1003.5, {}), (1003.0, {})])
def test_a_value_of_a_label_is_new_if_it_was_made_since(moment, expected):
    target = Target()
    page_of(target, {"stop": 40}, {"stop": 1003.5})
    delta = page_of(target, {"stop": 41, "repetition": 3}, {"stop": 1003.5, "repetition": moment})
    assert reasons_of(delta) == expected


def test_a_bucket_that_appears_in_a_histogram_has_nothing_to_count_from():
    def page(target, *rungs):
        buckets = "".join(
            f'vllm:time_to_first_token_seconds_bucket{{model_name="m",engine="0",le="{edge}"}} {count}\n'
            for edge, count in rungs
        )
        extra = buckets + 'vllm:time_to_first_token_seconds_sum{model_name="m",engine="0"} 9\n'
        return target.page(tokens(0), without=["time_to_first_token_seconds"], extra=extra)

    target = Target()
    page(target, ("1.0", 5), ("+Inf", 6))
    delta = page(target, ("0.5", 4), ("1.0", 5), ("+Inf", 7))
    assert (delta.withheld["time_to_first_token_seconds"], delta.anomalies) == ("not_new", {"not_new": 1})
    delta = page(target, ("0.5", 4), ("1.0", 6), ("+Inf", 8))
    parts = {i.part: i.amount for i in delta.ledger() if i.measure == "time_to_first_token_seconds"}
    assert parts == {"0.5": 0, "1.0": 1, "+Inf": 1, "sum": 0}


def test_a_real_page_whose_model_is_renamed():
    """A recorded vLLM 0.32.0: 948 prompt tokens under one name, 1,427 under the next, of one process."""
    steps, bench = recorded("0.32.0"), Bench()
    bench.poll(steps["01_cold"])
    bench.poll(steps["02_same"])
    assert bench.total("prompt_tokens") == 474
    bench.poll(steps["03_same_prefix_new_user"].replace(b'model_name="tiny"', b'model_name="team/tiny"'))
    assert bench.total("prompt_tokens", model="tiny") == 474
    assert bench.total("prompt_tokens", model="team/tiny") == 479


NAMES = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 1000)), min_size=2, max_size=8)


@settings(max_examples=60, deadline=None)
@given(NAMES, st.booleans())
def test_whatever_a_model_is_called_nothing_is_counted_twice(steps, with_starts):
    """What is counted is at most what one process counted under all its names, and with start times exactly that."""
    target, total, found = Target(), 5, 0
    named(target, "a", total, STARTS if with_starts else {})
    for model, more in steps:
        total += more
        found += sum(counted(named(target, model, total, STARTS if with_starts else {}), "prompt_tokens").values())
    assert found == total - 5 if with_starts else found <= total - 5
