"""Sums over the rows of a group are the sums over its records."""

from __future__ import annotations

from collections import Counter
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefix_cache_exporter.report.tally import Group, Tally
from prefix_cache_exporter.usage.eligible import Eligibility
from prefix_cache_exporter.usage.lane.sums import Sums
from prefix_cache_exporter.usage.prices.book import PriceBook
from prefix_cache_exporter.usage.prices.cost import Cost, Unpriced
from prefix_cache_exporter.usage.prices.money import Money, cost_rows, cost_sums, record_of, summable
from prefix_cache_exporter.usage.reuse import Rule
from support.records import record

COUNTS = st.integers(0, 400_000)
TTLS = st.sampled_from([None, "unknown", "5m", "30m", "1h", "12h"])
TIMES = st.sampled_from([None, 1.6e9, 1.75e9, 1.79e9, 1.7935e9, 1.7935e9 + 6 * 3600, 1.81e9])
BOOK = """
provider: house
source: https://example.org/prices
date: 2026-10-11
models:
- {id: fine, match: [fine], prices: [{input: 0.0000003, output: 0.0000005, read: 0.5x, write: 1.5x}]}
- {id: silent, match: [silent], prices: [{input: 1}]}
"""


@pytest.fixture(scope="module")
def prices(tmp_path_factory):
    path = tmp_path_factory.mktemp("books") / "book.yaml"
    path.write_text(BOOK)
    return PriceBook.load([path])


@st.composite
def rows(draw, reported):
    read, uncached, write = draw(COUNTS), draw(COUNTS), draw(st.none() | COUNTS)
    ttl = draw(TTLS)
    split = {ttl: write} if write and ttl else {}
    total = read + uncached + (write or 0)
    return (
        total, read if reported else None, write if reported else None, uncached if reported else None,
        draw(COUNTS), split if reported else {}, draw(TIMES), draw(st.none() | st.floats(0, 100)), None,
    )  # fmt: skip


@st.composite
def groups(draw):
    reported = draw(st.booleans())
    provider, model = draw(
        st.sampled_from(
            [
                ("openai", "gpt-6-sol"), ("openai", "gpt-4o"), ("deepseek", "deepseek-v4-pro"), ("house", "fine"),
                ("anthropic", "claude-sonnet-4-5"), ("house", "silent"), ("openai", "x"), ("vllm", "m"),
            ]
        )
    )  # fmt: skip
    sample = record(
        provider=provider,
        model=model,
        quality=draw(st.sampled_from(["ok", "ok", "ok", "served_from_gateway_cache"])) if reported else "cache_unknown",
        service_tier=draw(st.sampled_from([None, "default", "flex"])),
        batch=draw(st.sampled_from([None, True])),
        extra=draw(st.sampled_from([{}, {"eligible_tokens": "1500"}, {"eligible_tokens": "x"}])),
    )
    return sample, draw(st.lists(rows(reported), min_size=1, max_size=20))


def numbers(tally):
    """A tally's numbers; nothing written is nothing, whatever its time to live."""
    plain = [getattr(tally, name) for name in tally.__slots__ if name not in {"money", "written"}]
    return plain, {ttl: tokens for ttl, tokens in tally.written.items() if tokens}


def added(costs):
    """Costs by currency or reason, with how many records are in them."""
    money, unpriced = {}, Counter()
    for cost, records in costs:
        if isinstance(cost, Cost):
            money.setdefault(cost.currency, Money()).add(cost, records)
        else:
            unpriced[cost.reason] += records
    return {key: [getattr(one, name) for name in Money.__slots__] for key, one in money.items()}, unpriced


@settings(deadline=None)
@given(groups())
def test_costs_of_a_group_are_the_costs_of_its_records(prices, group):
    sample, some = group
    one_by_one = [(prices.cost(record_of(sample, row)), 1) for row in some]
    assert added(cost_rows(prices, sample, some)) == added(one_by_one)


def summed(sample, some, bounds):
    """Sums of rows, as the loop over a block makes them."""
    first = some[0]
    sums = Sums(sample, "label", list[Sums]().append, reported=first[1] is not None, bounds=bounds, time=first[6])
    for total, read, write, _, output, split, *_ in some:
        sums.total += total
        sums.read += read or 0
        sums.hits += bool(read)
        sums.others += not read
        sums.output += output
        if split:
            sums.wrote(split)
        elif write is not None:
            sums.unsplit += 1
            sums.unknown += write
    return sums


@settings(deadline=None)
@given(groups(), st.integers(0, 19))
def test_the_cost_of_sums_is_the_sum_of_costs_wherever_that_is_said(prices, group, place):
    sample, some = group
    sample_row = some[place % len(some)]
    bounds = summable(prices, sample, sample_row, ["unknown", "5m", "30m", "1h", "12h"])
    if bounds is None or sample_row[0] > bounds.most:
        return
    within = [
        row
        for row in some
        if row[0] <= bounds.most
        and (row[6] is None) == (sample_row[6] is None)
        and (row[6] is None or bounds.low <= row[6] <= bounds.high)
    ]
    assert sample_row in within
    one_by_one = [(prices.cost(record_of(sample, row)), 1) for row in within]
    sums = summed(sample, within, bounds)
    assert added([(cost_sums(prices, sums), len(within))]) == added(one_by_one)
    at_once, singly = Tally(), Tally()
    at_once.add_sums(sums, prices)
    for row in within:
        one = record_of(sample, row)
        singly.add(one, prices.cost(one), None)
    assert numbers(at_once) == numbers(singly)


@pytest.mark.parametrize(
    ("model", "most"), [("gpt-4o", inf), ("gpt-6-sol", 272_000), ("fine", None), ("nobody's", inf)]
)
def test_sums_end_where_a_price_ends(prices, model, most):
    provider = "house" if model == "fine" else "openai"
    bounds = summable(prices, record(provider=provider, model=model), (1, 0, None, 1, 1, {}, 1.79e9, None, None), [])
    assert (None if bounds is None else bounds.most) == most


@settings(deadline=None)
@given(groups(), st.sampled_from([None, 16, 500]), st.booleans())
def test_eligible_tokens_of_a_group_are_those_of_its_records(group, block, dated):
    sample, some = group
    rules = (Rule("vllm", end=1.79e9, recomputed=1), Rule("vllm", start=1.79e9, minimum=(1024, 1024))) if dated else ()
    eligibility = Eligibility(block_size_tokens=block, rules=rules)
    found = [(row[1] or 0, eligibility.eligible(record_of(sample, row))) for row in some]
    known = [(read, eligible) for read, eligible in found if eligible is not None]
    assert eligibility.sums(sample, some) == (
        len(known),
        sum(eligible for _, eligible in known),
        sum(min(pair) for pair in known),
    )


@settings(deadline=None)
@given(groups())
def test_a_group_added_at_once_is_the_group_added_one_by_one(prices, group):
    sample, some = group
    eligibility = Eligibility(block_size_tokens=16)
    at_once, singly = Group(), Group()
    at_once.add_rows(sample, some, prices, eligibility)
    for row in some:
        one = record_of(sample, row)
        singly.add(one, prices.cost(one), eligibility.eligible(one))

    def shown(group):
        ((outcome, tally),) = group.outcomes.items()
        numbers = {name: getattr(tally, name) for name in tally.__slots__ if name not in ("money", "written")}
        written = {ttl: count for ttl, count in tally.written.items() if count}
        money = {key: [getattr(one, name) for name in Money.__slots__] for key, one in tally.money.items()}
        return outcome, numbers, written, money, group.ttft.count, group.ttft.percentile(0.5), group.models

    assert shown(at_once) == shown(singly)


def test_money_adds_up():
    money, other = Money(), Money()
    money.add(Cost(1, 2, 3, None, 10, "USD", 5))
    other.add(Cost(1, 2, 3, 4, 10, "USD"), 7)
    money.merge(other)
    assert (money.input, money.output, money.priced, money.output_unknown) == (12, 4, 8, 1)
    assert (money.counterfactual, money.assumed_ttl_tokens) == (20, 5)


def test_a_replay_from_a_gateways_cache_costs_nothing_known(prices):
    sample = record(provider="openai", model="gpt-5", quality="served_from_gateway_cache")
    assert list(cost_rows(prices, sample, [(10, 5, None, 5, 1, {}, None, None, None)])) == [
        (Unpriced("served_from_gateway_cache"), 1)
    ]
