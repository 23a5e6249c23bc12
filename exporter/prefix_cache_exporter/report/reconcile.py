"""Logs against a provider's aggregates: every difference by day and model."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from .billed import MEASURES, Billed, Key
from .billing import read_billing
from .summary import amount
from .tally import Tally

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from prefix_cache_exporter.usage.prices.money import Money

__all__ = ["Logged", "compare", "read_billing"]

_MOST = 50_000
"""Days times models that are held apart; what is beyond is not compared, and said to be."""
_FREE = ("usage_missing", "served_from_gateway_cache")
"""Why a request has no cost because nobody bills it."""
_NAMES = {
    "requests": "requests",
    "input": "total_input_tokens",
    "read": "cache_read_tokens",
    "write": "cache_write_tokens",
    "output": "output_tokens",
}


class Logged:
    """What the logs say by day and model."""

    def __init__(self) -> None:
        self.by_key: dict[Key, Tally] = {}
        self.beyond = 0

    def add(self, key: Key, tally: Tally) -> None:
        """Takes in the sums of some records of one day and model."""
        found = self.by_key.get(key)
        if found is None:
            if len(self.by_key) >= _MOST:
                self.beyond += tally.requests
                return
            found = self.by_key[key] = Tally()
        found.merge(tally)


def compare(logged: Logged, billed: Mapping[Key, Billed], tolerance: float = 0.0) -> dict[str, Any]:
    """Lists differences by day and model; by day alone where the provider names no models at all.

    Args:
        logged: sums of the logs.
        billed: sums of the provider.
        tolerance: a difference of up to this share of the billed number is none.
    """
    differences: list[dict[str, Any]] = []
    compared = costs_unknown = 0
    share = Decimal(str(tolerance))
    by_model = not billed or any(model for _, model in billed)
    by_key = logged.by_key if by_model else _by_day(logged.by_key)
    for key in sorted({*by_key, *billed}):
        costs_unknown += _cost_unknown(by_key.get(key), billed.get(key))
        for measure, ours, theirs in _pairs(by_key.get(key), billed.get(key)):
            compared += 1
            if ours is not None and theirs is not None and abs(ours - theirs) <= abs(theirs) * share:
                continue
            difference = None if ours is None or theirs is None else ours - theirs
            differences.append(
                {
                    "day": key[0],
                    "model": key[1],
                    "measure": measure,
                    "logged": ours,
                    "billed": theirs,
                    "difference": difference,
                    "relative": float(difference / theirs) if difference is not None and theirs else None,
                }
            )
    return {
        "compared": compared,
        "tolerance": tolerance,
        "by_model": by_model,
        "costs_not_compared": costs_unknown,
        "records_not_compared": logged.beyond,
        "differences": differences,
    }


def _pairs(ours: Tally | None, theirs: Billed | None) -> Iterator[tuple[str, Decimal | None, Decimal | None]]:
    """Measures that both sides know, or that one side has for a day and model that the other lacks."""
    logged = _sums(ours)
    for measure in MEASURES:
        left = logged.get(measure)
        right = theirs.sums.get(measure) if theirs else None
        if (right is not None or theirs is None) and (left or right):
            yield _NAMES[measure], _whole(left), _whole(right)
    for currency in sorted(theirs.cost if theirs else ()):
        if ours is None:
            yield f"cost_{currency}", None, theirs.cost[currency] if theirs else None
        elif not _cost_unknown(ours, theirs):
            paid = amount(sum(money.input + money.output for money in _in_currency(ours, currency)))
            yield f"cost_{currency}", paid, theirs.cost[currency] if theirs else None


def _cost_unknown(ours: Tally | None, theirs: Billed | None) -> bool:
    """Whether there is a bill that cannot be compared: some of the records have no cost, or all in other currencies."""
    if ours is None or theirs is None or not theirs.cost:
        return False
    unpriced = any(count for reason, count in ours.unpriced.items() if reason not in _FREE)
    foreign = bool(ours.money) and not all(_in_currency(ours, currency) for currency in theirs.cost)
    return unpriced or foreign or any(money.output_unknown for money in ours.money.values())


def _in_currency(tally: Tally, currency: str) -> list[Money]:
    """Costs in a currency as bills write it, in capitals; price books may write it otherwise."""
    return [money for name, money in tally.money.items() if name.upper() == currency]


def _by_day(by_key: Mapping[Key, Tally]) -> dict[Key, Tally]:
    days: dict[Key, Tally] = {}
    for (day, _), tally in by_key.items():
        days.setdefault((day, ""), Tally()).merge(tally)
    return days


def _sums(tally: Tally | None) -> dict[str, int]:
    """What providers count: requests without usage are not billed."""
    if tally is None:
        return {}
    return {
        "requests": tally.requests - sum(tally.unpriced.get(reason, 0) for reason in _FREE),
        "input": tally.input_tokens,
        "read": tally.cached_prompt_tokens,
        "write": tally.written_prompt_tokens,
        "output": tally.output_tokens,
    }


def _whole(count: int | None) -> Decimal | None:
    return None if count is None else Decimal(count)
