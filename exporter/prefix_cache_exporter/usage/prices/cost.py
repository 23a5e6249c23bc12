"""What a usage record cost, exactly, at given prices; in whole trillionths of a currency unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from .rates import PER_TRILLIONTH, Rates

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prefix_cache_exporter.usage.record import UsageRecord


class Cost(msgspec.Struct, frozen=True, gc=False):
    """What one record cost, in trillionths of `currency`.

    Attributes:
        read, write, uncached: the three components of the input.
        output: None where output tokens or their price are not known.
        counterfactual: what the same input would have cost without caching.
        assumed_ttl_tokens: written tokens whose time to live the record does not say; priced by the book's default.
    """

    read: int
    write: int
    uncached: int
    output: int | None
    counterfactual: int
    currency: str
    assumed_ttl_tokens: int = 0

    @property
    def input(self) -> int:
        """The input cost paid."""
        return self.read + self.write + self.uncached

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.read + other.read,
            self.write + other.write,
            self.uncached + other.uncached,
            None if self.output is None or other.output is None else self.output + other.output,
            self.counterfactual + other.counterfactual,
            self.currency,
            self.assumed_ttl_tokens + other.assumed_ttl_tokens,
        )


class Unpriced(msgspec.Struct, frozen=True, gc=False):
    """Why a record has no cost: one of `REASONS`."""

    reason: str


REASONS = (
    "usage_missing",
    "cache_unknown",
    "served_from_gateway_cache",
    "unknown_provider",
    "unknown_model",
    "no_price_for_time",
    "time_unknown",
    "no_price_for_tier",
    "no_price_for_read",
    "no_price_for_ttl",
    "mixed_currencies",
)
"""Every reason, for the counter's label."""


def priced(record: UsageRecord, rates: Rates) -> Cost | Unpriced:
    """What one record costs at given prices; its total and uncached tokens are known."""
    total, uncached, read = (
        record.total_input_tokens or 0,
        record.uncached_input_tokens or 0,
        record.cache_read_tokens or 0,
    )
    if read and rates.read is None:
        return Unpriced("no_price_for_read")
    written = assumed = 0
    for ttl, tokens in _writes(record).items():
        rate = rates.written(ttl)
        if tokens and rate is None:
            return Unpriced("no_price_for_ttl")
        written += tokens * (rate or 0)
        assumed += tokens if ttl == "unknown" else 0
    output = record.output_tokens
    return Cost(
        _trillionths(read * (rates.read or 0)),
        _trillionths(written),
        _trillionths(uncached * rates.input),
        None if output is None or (output and rates.output is None) else _trillionths(output * (rates.output or 0)),
        _trillionths(total * rates.input),
        rates.currency,
        assumed,
    )


def _writes(record: UsageRecord) -> Mapping[str, int]:
    by_ttl = record.cache_write_by_ttl
    if by_ttl or not record.cache_write_tokens:
        return by_ttl
    return {"unknown": record.cache_write_tokens}


def _trillionths(attos: int) -> int:
    """Rounds to a whole trillionth, half to even; shipped prices come out whole."""
    whole, rest = divmod(attos, PER_TRILLIONTH)
    if not rest:
        return whole
    if rest * 2 > PER_TRILLIONTH or (rest * 2 == PER_TRILLIONTH and whole % 2):
        whole += 1
    return whole
