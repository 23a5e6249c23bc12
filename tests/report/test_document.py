from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from prefix_cache_exporter.measures import USAGE
from prefix_cache_exporter.recorder import Change
from prefix_cache_exporter.release import Release
from prefix_cache_exporter.report.document import Groups, Run, _moment, day_of
from prefix_cache_exporter.report.summary import summarise
from prefix_cache_exporter.report.tally import Group, Tally
from prefix_cache_exporter.usage.count import Counting
from prefix_cache_exporter.usage.eligible import Eligibility
from prefix_cache_exporter.usage.prices.book import PriceBook
from prefix_cache_exporter.usage.prices.cost import Unpriced
from prefix_cache_exporter.usage.tally import Tally as Served
from support.records import record

if TYPE_CHECKING:
    import random

UNKNOWN = Unpriced("unknown_model")


def test_groups_beyond_the_limit_go_to_other_and_sums_stay_exact():
    groups = Groups(["model", "day"], limit=3)
    for number in range(1000):
        one = record(model=f"m{number % 100}", total=10, read=number % 10, time=86400.0)
        groups.of(one).add(one, UNKNOWN, None)
    found = list(groups.items())
    assert [labels["model"] for labels, _ in found] == ["m0", "m1", "m2", "other"]
    assert found[-1][0] == {"model": "other", "day": "other"}
    assert groups.overflowed == 970
    assert sum(group.whole.cached_prompt_tokens for _, group in found) == 4500


def test_a_day_is_that_of_utc_and_a_time_beyond_the_calendar_is_none():
    assert day_of(record(time=86399.9)) == "1970-01-01"
    assert day_of(record(time=-0.5)) == "1969-12-31"
    assert day_of(record(time=1e18)) == "unknown"
    assert day_of(record()) == "unknown"
    assert _moment(1e18) is None


def test_ratios_are_sums_over_sums():
    group = Group()
    for total, read in ((10, 10), (1000, 10)):
        group.add(record(model="m", total=total, read=read), UNKNOWN, None)
    ratios = summarise(group, PriceBook.load())["ratios"]
    assert ratios["usage_request_hit"]["value"] == 1.0
    assert ratios["usage_population_hit"]["value"] == 20 / 1010  # not the mean of 1 and 0.01


def test_cached_tokens_beyond_the_shared_prefix_do_not_inflate_effectiveness():
    tally = Tally()
    tally.add(record(total=5000, read=4000), UNKNOWN, 1024)
    tally.add(record(total=5000, read=512), UNKNOWN, 1024)
    tally.add(record(total=5000, read=4000), UNKNOWN, None)
    assert (tally.eligible_cached_tokens, tally.eligible_tokens, tally.eligible_requests) == (1536, 2048, 2)


def test_a_request_that_does_not_report_is_in_no_denominator_but_coverages():
    tally = Tally()
    tally.add(record(total=100, read=None, output=5), UNKNOWN, 64)
    tally.add(record(total=None), UNKNOWN, None)
    assert (tally.reported_requests, tally.unreported_requests, tally.prompt_tokens) == (0, 2, 0)
    assert (tally.unreported_prompt_tokens, tally.eligible_tokens) == (100, 0)
    assert (tally.output_tokens, tally.output_unknown_requests) == (5, 1)


def test_outcomes_keep_failed_and_retried_requests_apart():
    group = Group()
    group.add(record(total=10, read=0), UNKNOWN, None)
    group.add(record(total=10, read=0, status="failed"), UNKNOWN, None)
    group.add(record(total=10, read=0, attempt="retry"), UNKNOWN, None)
    group.add(record(total=10, read=0, extra={"attempt": "retry"}), UNKNOWN, None)
    assert {outcome: tally.requests for outcome, tally in group.outcomes.items()} == {
        ("success", "first"): 1,
        ("failed", "first"): 1,
        ("success", "retry"): 2,
    }


def test_break_even_is_shown_for_boundedly_many_models_and_never_where_it_cannot_pay(tmp_path):
    (tmp_path / "book.yaml").write_text("""
provider: house
source: https://example.org/prices
date: 2026-10-11
models:
- {id: bad, match: [bad], prices: [{input: 1, read: 1x, write: 1.25x}]}
- {id: free, match: [free], prices: [{input: 0, read: 0, write: 0}]}
- {id: m, match: [m*], prices: [{input: 1, read: 0.2x, write: {5m: 1.4x, 1h: 2x}}]}
""")
    prices, group = PriceBook.load([tmp_path / "book.yaml"]), Group()
    for model in ("bad", "free", None, "m1", *(f"m{n}" for n in range(1000))):
        group.add(record(provider="house", model=model, total=1, read=0), UNKNOWN, None)
    rows = summarise(group, prices)["break_even"]
    assert [(row["model"], row["ttl"], row["hits"]) for row in rows[:3]] == [
        ("bad", "any", None),
        ("m0", "1h", 1.25),
        ("m0", "5m", 0.5),
    ]
    assert len(group.models) == 64


def test_small_groups_are_held_boundedly_and_none_is_forgotten():
    groups = Groups(["model"], limit=10_000)
    into = Run(groups, PriceBook.load(), Eligibility())
    for number in range(500):
        into.hold(record(provider="vllm", model=f"m{number}"), [(10, 5, None, 5, 1, {}, None, None, None)])
    assert len(into._held) <= 101
    into.flush()
    assert groups.whole().whole.requests == 500


def test_latency_in_the_document():
    group = Group()
    for n in range(25):
        group.add(record(total=1, read=0, ttft_seconds=n / 10, duration_seconds=None if n else 2.0), UNKNOWN, None)
    for status in ("failed", "cancelled", "incomplete"):  # a failure says nothing of how long an answer takes
        group.add(record(total=1, read=0, status=status, ttft_seconds=9.0, duration_seconds=9.0), UNKNOWN, None)
    shown = summarise(group, PriceBook.load())
    assert shown["time_to_first_token_seconds"] == {
        "count": 25,
        "p50": {"value": 1.2, "beyond": 12},
        "p95": {"value": None, "beyond": 1},
        "p99": {"value": None, "beyond": 0},
        "needs_beyond": 10,
    }
    assert shown["duration_seconds"]["p50"] == {"value": None, "beyond": 0}


counts = st.integers(0, 10**6)


@st.composite
def records(draw):
    read, write, uncached = draw(counts), draw(st.none() | counts), draw(counts)
    known = draw(st.booleans())
    split = draw(st.sampled_from([{}, {"5m": write or 0}, {"1h": write or 0}]))
    return record(
        provider=draw(st.sampled_from(["anthropic", "openai", "vllm"])),
        model=draw(st.sampled_from(["claude-opus-5", "gpt-6-sol", "x", None])),
        time=draw(st.none() | st.just(1793500000.0)),
        status=draw(st.sampled_from(["success", "failed", "cancelled", "incomplete"])),
        attempt=draw(st.sampled_from(["first", "retry"])),
        total=draw(st.none() | st.just(read + (write or 0) + uncached)),
        read=read if known else None,
        write=write if known else None,
        uncached=uncached if known else None,
        cache_write_by_ttl=split if known and write is not None else {},
        output=draw(st.none() | counts),
        extra=draw(st.sampled_from([{}, {"eligible_tokens": "1024"}, {"eligible_tokens": "999999999"}])),
    )


def by_outcome(change):
    """What a change of the recorder adds up to, by family, status and attempt."""
    sums = Counter()
    for (family, pairs), parts in change.parts.items():
        labels = dict(pairs)
        sums[family.id, labels.get("status"), labels.get("attempt")] += sum(parts.values())
    return sums


@settings(deadline=None, max_examples=50)
@given(st.lists(records(), max_size=30))
def test_the_report_counts_what_serve_counts(drawn):
    prices, eligibility = PriceBook.load(), Eligibility()
    counting = Counting(release=Release, prices=prices, eligibility=eligibility)
    served, change = Served("log"), Change()
    group = Group()
    for one in drawn:
        counting.count(one, served, 1793500000.0)
        group.add(one, prices.cost(one, 1793500000.0), eligibility.eligible(one))
    served.flush(change)
    counted = by_outcome(change)
    for (status, attempt), tally in group.outcomes.items():
        for id_ in USAGE:
            key = (id_, status, attempt)
            if id_ in {"input_cost", "output_cost", "counterfactual_input_cost"}:
                assert tally.measure(id_, "USD") == counted.get(key, 0)
            elif id_ == "unpriced_requests":
                assert sum(tally.unpriced.values()) == counted.get(key, 0)
            elif id_ == "priced_requests":
                assert sum(money.priced for money in tally.money.values()) == counted.get(key, 0)
            elif hasattr(tally, id_):
                assert tally.measure(id_) == counted.get(key, 0), id_
    assert sum(tally.requests for tally in group.outcomes.values()) == len(drawn)


@settings(deadline=None, max_examples=50)
@given(st.lists(records(), max_size=30), st.randoms(use_true_random=False))
def test_no_order_of_adding_changes_a_sum(drawn, rng: random.Random):
    prices = PriceBook.load()

    def shown(these):
        group = Group()
        for one in these:
            group.add(one, prices.cost(one), None)
        document = summarise(group, prices)
        del document["break_even"]  # shows the last price of each model
        return document

    shuffled = drawn[:]
    rng.shuffle(shuffled)
    assert shown(drawn) == shown(shuffled)
