from __future__ import annotations

from datetime import UTC, datetime

import pytest

from prefix_cache_exporter.usage.prices.book import PriceBook
from prefix_cache_exporter.usage.prices.cost import REASONS, Cost, Unpriced
from support.records import record

MILLIONTH = 10**6
NOW = datetime(2026, 11, 1, 12, tzinfo=UTC).timestamp()


@pytest.fixture(scope="module")
def shipped():
    return PriceBook.load()


@pytest.fixture
def book(tmp_path):
    """A price book of a user, from YAML."""

    def load(*texts: str, **options) -> PriceBook:
        files = []
        for number, text in enumerate(texts):
            files.append(tmp_path / f"book{number}.yaml")
            files[-1].write_text(text)
        return PriceBook.load(files, **options)

    return load


# The constructed example: 8,000 shared tokens, 500 of one's own, a write at 1.4 and a read at 0.2 of the input price.
UNITS = """
provider: house
source: https://example.org/prices
date: 2026-10-11
currency: units
per: 1000
models:
- {id: m, match: [m], prices: [{input: 1, output: 0, read: 0.2x, write: 1.4x}]}
"""
UNIT = 10**12
COLD = record(provider="house", model="m", total=8500, read=0, write=8000, output=0)
WARM = record(provider="house", model="m", total=8500, read=8000, write=0, output=0)


def test_one_write_and_nine_reads_cost_30_6_units_instead_of_85(book):
    costs = [book(UNITS).cost(one) for one in [COLD, *[WARM] * 9]]

    assert sum(cost.counterfactual for cost in costs) == 85 * UNIT
    assert sum(cost.input for cost in costs) == 306 * UNIT // 10
    assert sum(cost.write for cost in costs) == 112 * UNIT // 10
    assert sum(cost.read for cost in costs) == 144 * UNIT // 10
    assert sum(cost.uncached for cost in costs) == 5 * UNIT
    assert {cost.currency for cost in costs} == {"units"}


def test_ten_writes_cost_117_units_because_the_multiplier_is_the_whole_rate(book):
    assert sum(book(UNITS).cost(COLD).input for _ in range(10)) == 117 * UNIT


def test_an_anthropic_write_is_billed_once(shipped):
    # https://github.com/BerriAI/litellm/issues/9812: 0.0544, not 0.0913
    one = record(
        provider="anthropic", model="claude-3-5-sonnet-20241022", time=NOW, total=12307, read=0, write=12304,
        cache_write_by_ttl={"unknown": 12304}, output=550,
    )  # fmt: skip
    cost = shipped.cost(one)
    assert cost == Cost(
        read=0,
        write=46_140_000_000,
        uncached=9_000_000,
        output=8_250_000_000,
        counterfactual=36_921_000_000,
        currency="USD",
        assumed_ttl_tokens=12304,
    )
    assert round((cost.input + cost.output) / 10**12, 4) == 0.0544


def test_one_hour_writes_cost_their_own_rate(shipped):
    # 600 at 1.25 and 400 at 2 times 3.00 per million (https://github.com/pydantic/genai-prices/issues/295)
    one = record(
        provider="anthropic", model="claude-sonnet-4-5", time=NOW, total=1004, read=0, write=1000,
        cache_write_by_ttl={"5m": 600, "1h": 400}, output=1,
    )  # fmt: skip
    assert shipped.cost(one).write == 600 * 3_750_000 + 400 * 6_000_000
    assert shipped.cost(one).assumed_ttl_tokens == 0


def test_a_write_without_a_split_goes_by_the_default_of_the_book(shipped):
    one = record(provider="openai", model="gpt-6-sol", time=NOW, total=2600, read=2000, write=400, output=10)
    cost = shipped.cost(one)
    assert (cost.read, cost.write, cost.uncached) == (2000 * 200_000, 400 * 2_500_000, 200 * 2_000_000)
    assert cost.assumed_ttl_tokens == 400


def test_twelve_hour_writes_come_from_the_gap_file(shipped):
    one = record(
        provider="openai", model="gpt-6.1-terra", time=NOW, total=400, read=0, write=400,
        cache_write_by_ttl={"30m": 0, "12h": 400}, output=1,
    )  # fmt: skip
    assert shipped.cost(one).write == 400 * 2_500_000


@pytest.mark.parametrize(
    ("model", "total", "written"),
    [
        ("google/gemini-2.5-pro", 5000, 1_625_000),  # 1.25, and 4.50 an hour for five minutes
        ("google/gemini-2.5-pro", 200_001, 2_875_000),
        ("google/gemini-3.8-flash:batch", 5000, 416_667),
        ("anthropic/claude-opus-4.8", 5000, 6_250_000),  # listed whole
    ],
)
def test_a_write_that_is_listed_as_what_storage_adds_costs_the_input_too(shipped, model, total, written):
    # "Charged at the input token cost plus 5 minutes of cache storage": https://openrouter.ai/docs/features/prompt-caching
    one = record(provider="openrouter", model=model, time=NOW, total=total, read=0, write=1000, output=0)
    assert round(shipped.cost(one).write / 1000) == written


@pytest.mark.parametrize(
    ("total", "input_rate"), [(271_999, 2), (272_000, 2), (272_001, 4)], ids=["below", "at the threshold", "above"]
)
def test_the_length_tier_goes_by_the_total_input(shipped, total, input_rate):
    one = record(provider="openai", model="gpt-6-sol", time=NOW, total=total, read=total - 100, output=0)
    assert shipped.cost(one).uncached == 100 * input_rate * MILLIONTH
    assert shipped.cost(one).read == (total - 100) * input_rate * MILLIONTH // 10


@pytest.mark.parametrize(
    ("fields", "factor"),
    [
        ({}, 2),
        ({"service_tier": "default"}, 2),
        ({"service_tier": "Auto"}, 2),
        ({"service_tier": "flex"}, 1),
        ({"service_tier": "priority"}, 4),
        ({"batch": True}, 1),
        ({"batch": True, "service_tier": "default"}, 1),
        ({"batch": False}, 2),
        ({"service_tier": "batch"}, 1),
    ],
)
def test_service_tiers_and_batches_change_every_price(shipped, fields, factor):
    one = record(
        provider="openai", model="gpt-6-sol", time=NOW, total=300, read=100, write=100,
        cache_write_by_ttl={"30m": 100}, output=0, **fields,
    )  # fmt: skip
    cost = shipped.cost(one)
    assert (cost.uncached, cost.read, cost.write) == tuple(
        int(100 * MILLIONTH * factor * multiple) for multiple in (1, 0.1, 1.25)
    )


@pytest.mark.parametrize(
    ("fields", "factor"),
    [
        ({}, 1),
        ({"service_tier": "standard"}, 1),
        ({"service_tier": "fast"}, 2),
        ({"service_tier": "us"}, 1.1),
        ({"service_tier": "fast-us"}, 2.2),
        ({"batch": True, "service_tier": "batch"}, 0.5),
        ({"batch": True, "service_tier": "us"}, 0.55),
    ],
)
def test_speed_and_geography_of_claude_change_every_price(shipped, fields, factor):
    one = record(
        provider="anthropic", model="claude-opus-5", time=NOW, total=3000, read=1000, write=1000,
        cache_write_by_ttl={"1h": 1000}, output=1000, **fields,
    )  # fmt: skip
    cost = shipped.cost(one)
    assert (cost.uncached, cost.read, cost.write, cost.output) == tuple(
        round(1000 * MILLIONTH * rate * factor) for rate in (5, 0.5, 10, 25)
    )


def test_default_and_standard_pay_the_listed_price_where_no_book_says_otherwise(book, shipped):
    prices = book("""
provider: house
source: https://example.org/prices
date: 2026-10-11
models:
- {id: m, match: [m], prices: [{input: 1}]}
""")
    tiers = ("default", "standard", "Standard", "express")
    found = [prices.cost(record(provider="house", model="m", total=1, read=0, service_tier=tier)) for tier in tiers]
    assert [cost if isinstance(cost, Unpriced) else cost.uncached for cost in found] == [
        MILLIONTH,
        MILLIONTH,
        MILLIONTH,
        Unpriced("no_price_for_tier"),
    ]
    glm = record(provider="zai", model="glm-4.6", time=NOW, total=1000, read=0, output=1, service_tier="default")
    assert shipped.cost(glm).uncached == 600 * MILLIONTH


def test_results_of_batches_carry_no_time_and_have_a_price(shipped):
    # half of 3.00, 0.30, 3.75 and 15.00 per million
    one = record(
        provider="anthropic", model="claude-sonnet-4-20250514", total=3000, read=1000, write=1000,
        cache_write_by_ttl={"5m": 1000}, output=1000, batch=True, service_tier="batch",
    )  # fmt: skip
    cost = shipped.cost(one)
    assert (cost.read, cost.write, cost.uncached) == (150 * MILLIONTH, 1875 * MILLIONTH, 1500 * MILLIONTH)
    assert (cost.output, cost.counterfactual) == (7500 * MILLIONTH, 4500 * MILLIONTH)


@pytest.mark.parametrize("time", [None, datetime(2025, 6, 1, tzinfo=UTC).timestamp(), NOW])
def test_cached_input_of_batches_keeps_its_price_where_the_batch_table_names_none(shipped, time):
    one = record(provider="openai", model="gpt-4.1", time=time, total=200, read=100, output=100, batch=True)
    cost = shipped.cost(one)
    assert (cost.read, cost.uncached, cost.output) == (50 * MILLIONTH, 100 * MILLIONTH, 400 * MILLIONTH)


@pytest.mark.parametrize("ttl", ["5m", "30m", "unknown"])
def test_a_write_of_openais_models_elsewhere_costs_the_same_under_either_name(shipped, ttl):
    one = record(
        provider="bedrock", model="global.openai.gpt-6-sol", time=NOW, total=1000, read=0, write=1000,
        cache_write_by_ttl={ttl: 1000}, output=0,
    )  # fmt: skip
    assert shipped.cost(one).write == 2500 * MILLIONTH


@pytest.mark.parametrize(
    ("provider", "model", "rates"),
    [
        ("openai", "ft:gpt-4o-2024-08-06:acme::abc", (3.75, 1.875, 15)),
        ("openai", "ft:gpt-4o-mini-2024-07-18:acme::abc", (0.3, 0.15, 1.2)),
        ("openai", "ft:gpt-4.1-2025-04-14:acme::abc", (3, 0.75, 12)),
        ("openai", "ft:gpt-4.1-nano-2025-04-14:acme::abc", (0.2, 0.05, 0.8)),
        ("openai", "ft:o4-mini-2025-04-16:acme::abc", (4, 1, 16)),
        ("anthropic", "claude-mythos-5", (10, 1, 50)),
        ("anthropic", "claude-mythos-5-1-20260901", (10, 0.25, 50)),
        ("mistral", "mistral-medium-3-5", (1.5, 0.15, 7.5)),
        ("mistral", "magistral-medium-2509", (2, 0.2, 5)),  # 10 % where no price of its own is listed
    ],
)
def test_gaps_of_the_package_are_filled(shipped, provider, model, rates):
    one = record(provider=provider, model=model, time=NOW, total=2000, read=1000, output=1000)
    cost = shipped.cost(one)
    assert (cost.uncached, cost.read, cost.output) == tuple(int(1000 * MILLIONTH * rate) for rate in rates)


def test_a_price_holds_from_its_day_on(shipped):
    def uncached(*day):
        return shipped.cost(
            record(
                provider="openai", model="gpt-5.6-terra", time=datetime(*day, tzinfo=UTC).timestamp(), total=100, read=0
            )
        ).uncached

    assert uncached(2026, 7, 29) == 250 * MILLIONTH
    assert uncached(2026, 8, 1) == 200 * MILLIONTH


def at(moment: str) -> float:
    return datetime.fromisoformat(moment).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("model", "moment", "rates"),
    [
        # https://api-docs.deepseek.com/quick_start/pricing, as it stood at each time: input, read, output per million
        ("deepseek-chat", "2025-08-01T12:00:00", (0.27, 0.07, 1.1)),
        ("deepseek-chat", "2025-08-01T20:00:00", (0.135, 0.035, 0.55)),
        ("deepseek-reasoner", "2025-09-10T20:00:00", (0.56, 0.07, 1.68)),
        ("deepseek-chat", "2025-12-01T20:00:00", (0.28, 0.028, 0.42)),
        ("deepseek-chat", "2026-05-01T02:00:00", (0.14, 0.0028, 0.28)),
        ("deepseek-v4-flash", "2026-08-16T02:00:00", (0.14, 0.0028, 0.28)),
        ("deepseek-v4-flash", "2026-08-20T02:00:00", (0.44, 0.014, 1.32)),
        ("deepseek-v4-flash", "2026-08-22T02:00:00", (0.44, 0.014, 1.32)),  # a Saturday, the last with a peak
        ("deepseek-v4-flash", "2026-08-23T02:00:00", (0.22, 0.007, 0.66)),  # a Sunday
        ("deepseek-v4-flash", "2026-08-24T09:59:59", (0.44, 0.014, 1.32)),
        ("deepseek-v4-flash", "2026-08-24T10:00:00", (0.22, 0.007, 0.66)),
        ("deepseek-v4-pro", "2026-11-27T06:00:00", (1.32, 0.044, 3.96)),  # a Friday
        ("deepseek-v4-pro", "2026-11-28T06:00:00", (0.66, 0.022, 1.98)),
        ("deepseek-flash", "2026-11-29T03:00:00", (0.15, 0.003, 0.6)),
        ("deepseek-flash", "2026-11-30T03:00:00", (0.3, 0.006, 1.2)),
    ],
)
def test_a_peak_on_weekdays_costs_more_and_none_on_weekends(shipped, model, moment, rates):
    found = shipped.rates("deepseek", model, time=at(moment))
    assert (found.input, found.read, found.output) == tuple(round(rate * 10**12) for rate in rates)


def test_a_name_that_is_no_longer_served_has_no_price(shipped):
    assert shipped.rates("deepseek", "deepseek-chat", time=at("2026-08-01T00:00:00")) == "no_price_for_time"


def test_a_daily_window_is_in_utc_and_may_pass_midnight(book):
    prices = book("""
provider: house
source: https://example.org/prices
date: 2026-10-11
models:
- id: m
  match: [m]
  prices:
  - {input: 1}
  - {input: 2, daily: {from: "22:00", to: "06:00"}}
""")

    def uncached(hour):
        time = datetime(2026, 3, 4, hour, tzinfo=UTC).timestamp()
        return prices.cost(record(provider="house", model="m", time=time, total=1, read=0)).uncached // MILLIONTH

    assert [uncached(hour) for hour in (21, 22, 0, 5, 6)] == [1, 2, 2, 2, 1]


@pytest.mark.parametrize(
    ("provider", "model", "rate"),
    [
        ("anthropic", "claude-opus-4-5-20251101", 5),
        ("bedrock", "global.anthropic.claude-sonnet-4-5-20250929-v1:0", 3),
        ("aws.bedrock", "arn:aws:bedrock:us-east-1:1:inference-profile/global.anthropic.claude-opus-4-5-v1:0", 5),
        ("vertex_ai", "claude-sonnet-4@20250514", 3),
        ("gcp.vertex_ai", "publishers/google/models/gemini-2.5-pro", 1.25),
        ("gemini", "models/gemini-2.5-flash", 0.3),
        ("azure", "gpt-4o-2024-08-06", 2.5),
        ("litellm", "anthropic/claude-opus-4-8", 5),
        ("openrouter", "openrouter/anthropic/claude-sonnet-4", 3),
        ("openai", "gpt-5.2-20251211", 1.75),
        ("openai", "GPT-4o", 2.5),
        ("fireworks_ai", "fireworks_ai/accounts/fireworks/models/glm-5p2", 1.4),
    ],
)
def test_a_model_is_found_under_the_names_that_gateways_give_it(shipped, provider, model, rate):
    one = record(provider=provider, model=model, time=NOW, total=100, read=0, output=1)
    assert shipped.cost(one).uncached == int(100 * rate * MILLIONTH)


def test_input_that_is_all_there_is_has_a_cost_though_nobody_said_that_nothing_was_cached(shipped):
    """Converse and Messages without cache fields: reads are unknown, and the uncached tokens are the whole input."""
    said = record(provider="bedrock", model="amazon.nova-pro-v1:0", time=NOW, total=35, read=0, output=446)
    silent = record(
        provider="bedrock", model="amazon.nova-pro-v1:0", time=NOW, total=35, read=None, uncached=35, output=446
    )
    assert isinstance(shipped.cost(said), Cost)
    assert shipped.cost(silent) == shipped.cost(said)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"total": None}, "usage_missing"),
        ({"read": None, "uncached": None}, "cache_unknown"),
        ({"quality": "served_from_gateway_cache"}, "served_from_gateway_cache"),
        ({"provider": "somebody"}, "unknown_provider"),
        ({"provider": ""}, "unknown_provider"),
        ({"model": "house-model-7"}, "unknown_model"),
        ({"model": None}, "unknown_model"),
        # A model's publisher is not whoever serves it.
        ({"provider": "vllm", "model": "deepseek/deepseek-chat"}, "unknown_model"),
        ({"service_tier": "scale"}, "no_price_for_tier"),
        ({"service_tier": "flex", "time": datetime(2025, 1, 1, tzinfo=UTC).timestamp()}, "no_price_for_tier"),
        ({"service_tier": "flex", "time": None}, "time_unknown"),
        ({"provider": "deepseek", "model": "deepseek-chat", "time": None}, "time_unknown"),
        (
            {"provider": "anthropic", "model": "claude-opus-5", "write": 50, "cache_write_by_ttl": {"12h": 50}},
            "no_price_for_ttl",
        ),
        ({"provider": "groq", "model": "qwen/qwen3-32b"}, "no_price_for_read"),
    ],
)
def test_what_cannot_be_priced_says_why(shipped, fields, reason):
    one = record(**{"model": "gpt-4o", "time": NOW, "total": 300, "read": 100, "output": 1, **fields})
    assert shipped.cost(one) == Unpriced(reason)
    assert reason in REASONS


def test_a_record_without_a_time_is_priced_at_the_time_it_was_read(shipped):
    one = record(provider="deepseek", model="deepseek-v4-pro", total=100, read=0)
    assert shipped.cost(one, at=NOW).uncached == 66 * MILLIONTH


def test_no_price_for_time_outside_every_period(book):
    prices = book("""
provider: house
source: https://example.org/prices
date: 2026-10-11
models:
- {id: m, match: [m], prices: [{input: 1, from: 2026-01-01, to: 2026-02-01}]}
""")
    inside, after = (datetime(2026, month, 31 if month == 1 else 1, 23, tzinfo=UTC).timestamp() for month in (1, 2))
    assert prices.cost(record(provider="house", model="m", time=inside, total=1, read=0)).input == MILLIONTH
    assert prices.cost(record(provider="house", model="m", time=after, total=1, read=0)) == Unpriced(
        "no_price_for_time"
    )


def test_output_of_unknown_amount_or_price_has_no_cost(book):
    prices = book(UNITS.replace("output: 0, ", ""))
    assert prices.cost(record(provider="house", model="m", total=10, read=0, output=5)).output is None
    assert prices.cost(record(provider="house", model="m", total=10, read=0, output=0)).output == 0
    assert prices.cost(record(provider="house", model="m", total=10, read=0)).output is None


def test_a_missing_price_falls_back_to_what_the_book_says(book):
    silent = UNITS.replace("read: 0.2x, write: 1.4x", "")
    assert book(silent).cost(WARM) == Unpriced("no_price_for_read")
    assert book(silent).cost(COLD) == Unpriced("no_price_for_ttl")
    told = silent + "missing: {read: 1x, write: 0.5}\n"
    assert book(told).cost(WARM).read == 8 * UNIT
    assert book(told).cost(COLD).write == 4 * UNIT


def test_a_model_that_lists_writes_has_no_price_for_other_times_to_live(shipped):
    fields = {"time": NOW, "total": 100, "read": 0, "write": 100, "cache_write_by_ttl": {"1h": 100}}
    assert shipped.cost(record(model="gpt-6-sol", **fields)) == Unpriced("no_price_for_ttl")
    assert shipped.cost(record(model="gpt-4o", **fields)).write == 250 * MILLIONTH


def test_components_are_priced_by_their_own_models_and_added(shipped):
    big = record(provider="anthropic", model="claude-opus-5", time=NOW, total=100, read=0, output=10)
    small = record(provider="anthropic", model="claude-sonnet-5", time=NOW, total=100, read=0, output=10)
    whole = record(provider="anthropic", model="claude-opus-5", time=NOW, total=200, read=0, components=(big, small))
    assert shipped.cost(whole).uncached == (500 + 200) * MILLIONTH
    assert shipped.cost(whole).output == (250 + 100) * MILLIONTH

    unknown = record(provider="anthropic", model="house", time=NOW, total=100, read=0)
    partly = record(provider="anthropic", model="claude-opus-5", total=200, read=0, components=(big, unknown))
    assert shipped.cost(partly) == Unpriced("unknown_model")
    silent = record(provider="anthropic", model="claude-opus-5", time=NOW, total=100, read=0)
    without = record(provider="anthropic", model="claude-opus-5", total=200, read=0, components=(big, silent))
    assert shipped.cost(without).output is None


def test_components_in_two_currencies_are_not_added(book):
    prices = book(UNITS, UNITS.replace("house", "other").replace("units", "EUR"))
    both = record(total=1, read=0, components=(WARM, record(provider="other", model="m", total=1, read=0)))
    assert prices.cost(both) == Unpriced("mixed_currencies")


def test_a_users_book_lies_over_the_shipped_one_and_the_later_over_the_earlier(book):
    mine = """
provider: azure_openai
source: https://example.org/contract
date: 2026-10-11
currency: EUR
models:
- {id: ours, match: [gpt-4o*], prices: [{input: PRICE, output: 8, read: 0.5x}]}
"""
    one = record(provider="azure", model="azure/gpt-4o", time=NOW, total=100, read=0, service_tier="default")
    assert book(mine.replace("PRICE", "2")).cost(one).uncached == 200 * MILLIONTH
    assert book(mine.replace("PRICE", "2"), mine.replace("PRICE", "3")).cost(one).uncached == 300 * MILLIONTH
    assert book(mine.replace("PRICE", "2")).cost(one).currency == "EUR"
    other = record(provider="azure", model="o3-mini", time=NOW, total=100, read=0)
    assert book(mine.replace("PRICE", "2")).cost(other).currency == "USD"


def test_a_book_without_a_currency_has_the_configured_one(book):
    assert book(UNITS.replace("currency: units\n", ""), currency="CHF").cost(WARM).currency == "CHF"


def test_a_users_book_keeps_the_discounts_that_hold_for_the_whole_provider(book):
    mine = """
provider: openai
source: https://example.org/contract
date: 2026-10-11
models:
- {id: ours, match: [gpt-6-sol], prices: [{input: 1}]}
"""
    one = record(model="gpt-6-sol", time=NOW, total=100, read=0, batch=True)
    assert book(mine).cost(one).uncached == 50 * MILLIONTH


def test_costs_are_rounded_once_per_component_half_to_even(book):
    # 0.0000005 per million tokens is half a trillionth per token
    prices = book(UNITS.replace("per: 1000", "per: 1000000").replace("input: 1,", "input: 0.0000005,"))
    assert [
        prices.cost(record(provider="house", model="m", total=tokens, read=0)).uncached for tokens in (1, 2, 3, 4, 5)
    ] == [0, 1, 2, 2, 2]


def test_a_bounded_number_of_models_is_remembered(book):
    prices = book(UNITS)
    for number in range(5000):
        prices.cost(record(provider="house", model=f"m{number}", total=1, read=0))
    assert len(prices._found) <= 4096
    assert prices.cost(WARM).input == 16 * UNIT // 10 + UNIT // 2


ABOVE_SHIPPED = """
provider: openai
source: https://example.org/contract
date: 2026-11-01
modes: [{when: priority, factor: 3}, {when: flex, factor: 0.6}]
models:
- {id: m, match: [gpt-6-sol], prices: [{input: 1, output: 4}]}
"""


@pytest.mark.parametrize(
    ("fields", "rate"),
    [
        ({}, 1_000_000),
        ({"service_tier": "priority"}, 3_000_000),
        ({"service_tier": "flex"}, 600_000),  # its own, not the 0.5 of the shipped book
        ({"batch": True}, 500_000),  # of which it says nothing: the shipped book does
    ],
)
def test_a_book_that_names_one_tier_leaves_the_others_to_the_shipped_book(book, fields, rate):
    one = record(provider="openai", model="gpt-6-sol", time=NOW, total=1, read=0, output=0, **fields)
    assert book(ABOVE_SHIPPED).cost(one).uncached == rate
