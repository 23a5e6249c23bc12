"""Groups to one plain document: sums first, ratios last, each with both sides and its name."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from prefix_cache_exporter.measures import RATIOS
from prefix_cache_exporter.measures.usage import MONEY_SCALE

from .latency import BEYOND, QUANTILES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from prefix_cache_exporter.measures import Ratio
    from prefix_cache_exporter.usage.prices.book import PriceBook
    from prefix_cache_exporter.usage.prices.money import Money

    from .latency import Durations
    from .tally import Group, Tally

SYMBOLS = {"usage_request_hit": "H", "usage_population_hit": "R"}
"""The short names under which two of the ratios are known."""
BREAK_EVEN = (
    "one write, after which every request within its time to live reads the whole prefix; 0 <= r < 1; nothing else"
)
"""When the number of hits after which caching has paid is what the formula says."""
_MONEY = frozenset({"input_cost", "output_cost", "counterfactual_input_cost"})


def summarise(group: Group, prices: PriceBook) -> dict[str, Any]:
    """One group as the document shows it."""
    whole = group.whole
    return {
        "requests": whole.requests,
        "outcomes": [_outcome(status, attempt, tally) for (status, attempt), tally in sorted(group.outcomes.items())],
        "ratios": {ratio.id: shown for ratio in RATIOS if (shown := _ratio(ratio, whole)) is not None},
        "tokens": _tokens(whole),
        "cost": {currency: _cost(money) for currency, money in sorted(whole.money.items())},
        "unpriced_requests": dict(sorted(whole.unpriced.items())),
        "break_even": list(_break_even(group.models, prices)),
        "time_to_first_token_seconds": _percentiles(group.ttft),
        "duration_seconds": _percentiles(group.durations),
    }


def amount(trillionths: int) -> Decimal:
    """Money as people write it; exact."""
    value = Decimal(trillionths) / MONEY_SCALE
    whole = value.to_integral_value()
    return whole if value == whole else value.normalize()


def quotient(numerator: float, denominator: float) -> float | None:
    """The value of a ratio; None where there is nothing to divide by."""
    return float(Fraction(numerator) / Fraction(denominator)) if denominator else None


def _outcome(status: str, attempt: str, tally: Tally) -> dict[str, Any]:
    return {
        "status": status,
        "attempt": attempt,
        "requests": tally.requests,
        "input_tokens": tally.input_tokens,
        "cached_prompt_tokens": tally.cached_prompt_tokens,
        "written_prompt_tokens": tally.written_prompt_tokens,
        "output_tokens": tally.output_tokens,
        "cost": {currency: amount(money.input + money.output) for currency, money in sorted(tally.money.items())},
    }


def _ratio(ratio: Ratio, tally: Tally) -> dict[str, Any] | None:
    if ratio.plane != "usage":
        return None
    if not _MONEY & {*ratio.numerator, *ratio.denominator}:
        numerator, denominator = (sum(map(tally.measure, side)) for side in (ratio.numerator, ratio.denominator))
        return _sides(ratio, numerator, denominator)
    if not tally.money:
        return None
    by_currency = {}
    for currency in sorted(tally.money):
        numerator, denominator = (
            sum(tally.measure(id_, currency) for id_ in side) for side in (ratio.numerator, ratio.denominator)
        )
        by_currency[currency] = {
            "numerator": amount(numerator),
            "denominator": amount(denominator),
            "value": quotient(numerator, denominator),
        }
    return {**_named(ratio), "by_currency": by_currency}


def _sides(ratio: Ratio, numerator: int, denominator: int) -> dict[str, Any]:
    return {
        **_named(ratio),
        "numerator": numerator,
        "denominator": denominator,
        "value": quotient(numerator, denominator),
    }


def _named(ratio: Ratio) -> dict[str, Any]:
    symbol = SYMBOLS.get(ratio.id)
    return {
        "title": ratio.title,
        **({"symbol": symbol} if symbol else {}),
        "numerator_of": " + ".join(ratio.numerator),
        "denominator_of": " + ".join(ratio.denominator),
    }


def _tokens(tally: Tally) -> dict[str, Any]:
    return {
        "prompt_tokens": tally.prompt_tokens,
        "unreported_prompt_tokens": tally.unreported_prompt_tokens,
        "cached_prompt_tokens": tally.cached_prompt_tokens,
        "written_prompt_tokens": dict(sorted(tally.written.items())),
        "uncached_prompt_tokens": tally.uncached_prompt_tokens,
        "output_tokens": tally.output_tokens,
        "output_unknown_requests": tally.output_unknown_requests,
        "eligible_tokens": tally.eligible_tokens,
        "eligible_cached_tokens": tally.eligible_cached_tokens,
    }


def _cost(money: Money) -> dict[str, Any]:
    return {
        "priced_requests": money.priced,
        "read": amount(money.read),
        "write": amount(money.write),
        "uncached": amount(money.uncached),
        "input": amount(money.input),
        "output": amount(money.output),
        "output_unknown_requests": money.output_unknown,
        "counterfactual_input": amount(money.counterfactual),
        "assumed_ttl_tokens": money.assumed_ttl_tokens,
    }


def _break_even(models: Mapping[tuple[str, str | None], float | None], prices: PriceBook) -> Iterable[dict[str, Any]]:
    for (provider, model), time in sorted(models.items(), key=str):
        rates = prices.rates(provider, model, time=time)
        if isinstance(rates, str) or rates.read is None or not rates.input:
            continue
        read = Fraction(rates.read, rates.input)
        for ttl, rate in sorted(rates.write.items()):
            write = Fraction(rate, rates.input)
            yield {
                "provider": provider,
                "model": model,
                "ttl": "any" if ttl == "*" else ttl,
                "write_multiplier": float(write),
                "read_multiplier": float(read),
                "hits": float((write - 1) / (1 - read)) if read < 1 else None,
                "conditions": BREAK_EVEN,
            }


def _percentiles(durations: Durations) -> dict[str, Any]:
    shown: dict[str, Any] = {"count": durations.count}
    for quantile in QUANTILES:
        found = durations.percentile(quantile)
        value = found.value if found.supported else None
        shown[f"p{quantile * 100:g}"] = {"value": None if value is None else round(value, 6), "beyond": found.beyond}
    if durations.count:
        shown["needs_beyond"] = BEYOND
    return shown
