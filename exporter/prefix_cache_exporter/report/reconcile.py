"""Logs against a provider's aggregates: every difference by day and model."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from prefix_cache_exporter.usage.price import Unpriced

from .billing import MEASURES, Billed, Key, read_billing
from .document import day_of
from .summary import amount

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from prefix_cache_exporter.usage.price import Cost
    from prefix_cache_exporter.usage.record import UsageRecord

__all__ = ["Logged", "compare", "read_billing"]

_MOST = 50_000
"""Days times models that are held apart; what is beyond is not compared, and said to be."""
_NAMES = {
    "requests": "requests",
    "input": "total_input_tokens",
    "read": "cache_read_tokens",
    "write": "cache_write_tokens",
    "output": "output_tokens",
}


@dataclass(slots=True)
class _Sums:
    sums: dict[str, int] = field(default_factory=lambda: dict.fromkeys(MEASURES, 0))
    cost: dict[str, int] = field(default_factory=dict)
    unpriced: int = 0


class Logged:
    """What the logs say by day and model."""

    def __init__(self) -> None:
        self.by_key: dict[Key, _Sums] = {}
        self.beyond = 0

    def add(self, record: UsageRecord, cost: Cost | Unpriced) -> None:
        """Takes in one record. Requests without usage are left out: no provider bills them."""
        if record.total_input_tokens is None:
            return
        key = (day_of(record), record.model or "")
        found = self.by_key.get(key)
        if found is None:
            if len(self.by_key) >= _MOST:
                self.beyond += 1
                return
            found = self.by_key[key] = _Sums()
        sums = found.sums
        sums["requests"] += 1
        sums["input"] += record.total_input_tokens
        sums["read"] += record.cache_read_tokens or 0
        sums["write"] += record.cache_write_tokens or 0
        sums["output"] += record.output_tokens or 0
        if isinstance(cost, Unpriced):
            found.unpriced += 1
        else:
            found.cost[cost.currency] = found.cost.get(cost.currency, 0) + cost.input + (cost.output or 0)


def compare(logged: Logged, billed: Mapping[Key, Billed], tolerance: float = 0.0) -> dict[str, Any]:
    """Lists differences.

    Args:
        logged: sums of the logs.
        billed: sums of the provider.
        tolerance: a difference of up to this share of the billed number is none.
    """
    differences: list[dict[str, Any]] = []
    compared = 0
    share = Decimal(str(tolerance))
    for key in sorted({*logged.by_key, *billed}):
        for measure, ours, theirs in _pairs(logged.by_key.get(key), billed.get(key)):
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
        "records_not_compared": logged.beyond,
        "differences": differences,
    }


def _pairs(ours: _Sums | None, theirs: Billed | None) -> Iterator[tuple[str, Decimal | None, Decimal | None]]:
    """Measures that both sides know, or that one side has for a day and model that the other lacks."""
    for measure in MEASURES:
        left = ours.sums[measure] if ours else None
        right = theirs.sums.get(measure) if theirs else None
        if (right is not None or theirs is None) and (left or right):
            yield _NAMES[measure], _whole(left), _whole(right)
    for currency in sorted(theirs.cost if theirs else ()):
        if ours is None or not ours.unpriced:
            paid = amount(ours.cost.get(currency, 0)) if ours else None
            yield f"cost_{currency}", paid, theirs.cost[currency] if theirs else None


def _whole(count: int | None) -> Decimal | None:
    return None if count is None else Decimal(count)
