"""What many records cost together: sums of exact per-record costs, without an object per record."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from math import inf, nextafter
from typing import TYPE_CHECKING

from prefix_cache_exporter.usage.lane.sums import EVERYTHING, Bounds
from prefix_cache_exporter.usage.record import UsageRecord

from .cost import Cost, Unpriced, priced
from .models import Schedule
from .rates import PER_TRILLIONTH, Rates

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from prefix_cache_exporter.usage.intake import Row
    from prefix_cache_exporter.usage.lane.sums import Sums

    from .book import PriceBook


class Money:
    """Costs in one currency, in trillionths."""

    __slots__ = (
        "assumed_ttl_tokens",
        "counterfactual",
        "output",
        "output_unknown",
        "priced",
        "read",
        "uncached",
        "write",
    )

    def __init__(self) -> None:
        self.read = self.write = self.uncached = self.output = self.counterfactual = 0
        self.priced = self.output_unknown = self.assumed_ttl_tokens = 0

    @property
    def input(self) -> int:
        """The input cost paid."""
        return self.read + self.write + self.uncached

    def add(self, cost: Cost, records: int = 1) -> None:
        """Takes in the cost of one record, or the sum of several whose output is known."""
        self.priced += records
        self.read += cost.read
        self.write += cost.write
        self.uncached += cost.uncached
        self.counterfactual += cost.counterfactual
        self.assumed_ttl_tokens += cost.assumed_ttl_tokens
        if cost.output is None:
            self.output_unknown += records
        else:
            self.output += cost.output

    def merge(self, other: Money) -> None:
        """Adds another sum."""
        for name in Money.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


def cost_rows(prices: PriceBook, sample: UsageRecord, rows: Sequence[Row]) -> Iterable[tuple[Cost | Unpriced, int]]:
    """Costs of plain records that differ in nothing but their rows: sums, each with how many records are in it.

    Where every price is a whole number of trillionths per token, the sum of costs is the cost of the sum; elsewhere
    each record is rounded by itself, as `PriceBook.cost` does.
    """
    if sample.quality == "served_from_gateway_cache":
        yield Unpriced("served_from_gateway_cache"), len(rows)
        return
    if rows[0][3] is None:
        yield Unpriced("cache_unknown"), len(rows)
        return
    for rates, some in _by_rates(prices, sample, rows):
        if isinstance(rates, str):
            yield Unpriced(rates), len(some)
            continue
        whole = _whole(rates, some)
        if whole is not None:
            yield whole, len(some)
            continue
        for row in some:
            yield priced(record_of(sample, row), rates), 1


def summable(prices: PriceBook, sample: UsageRecord, row: Row, ttls: Iterable[str]) -> Bounds | None:
    """Which records like one cost together what their sums cost; None where none do.

    Args:
        prices: the prices.
        sample: what the records have in common.
        row: one of them.
        ttls: times to live for which they may write.
    """
    found = prices.schedule(sample.provider, sample.model, sample.service_tier, batch=sample.batch is True)
    bounds, time = EVERYTHING, row[6]
    if isinstance(found, Schedule):
        totals, moments, daily = found.prices.edges(found.mode)
        if daily or (moments and time is None):
            return None
        at = bisect_right(moments, time or 0.0)
        low, high = [-inf, *moments][at], [*moments, inf][at]
        bounds = Bounds(totals[0] if totals else inf, low, nextafter(high, -inf))
        rates = found.rates(0, time)
    else:
        rates = found
    if isinstance(rates, str):
        return bounds
    whole = rates.exact and rates.read is not None and rates.output is not None
    return bounds if whole and all(rates.written(ttl) is not None for ttl in ttls) else None


def cost_sums(prices: PriceBook, sums: Sums) -> Cost | Unpriced:
    """What records cost whose prices are `summable`."""
    sample = sums.sample
    if sample.quality == "served_from_gateway_cache":
        return Unpriced(sample.quality)
    if not sums.reported:
        return Unpriced("cache_unknown")
    rates = prices.rates(
        sample.provider,
        sample.model,
        time=sums.time,
        service_tier=sample.service_tier,
        batch=sample.batch is True,
    )
    if not isinstance(rates, Rates):
        return Unpriced(str(rates))
    written = sums.written
    per = PER_TRILLIONTH
    return Cost(
        sums.read * (rates.read or 0) // per,
        sum(tokens * (rates.written(ttl) or 0) for ttl, tokens in written.items()) // per,
        sums.uncached * rates.input // per,
        sums.output * (rates.output or 0) // per,
        sums.total * rates.input // per,
        rates.currency,
        written.get("unknown", 0),
    )


def record_of(sample: UsageRecord, row: Row) -> UsageRecord:
    """One record of a group, without its id."""
    total, read, write, uncached, output, split, time, ttft, duration = row
    return UsageRecord(
        None,
        sample.format,
        sample.provider,
        sample.model,
        time,
        sample.status,
        sample.quality,
        sample.anomalies,
        total,
        read,
        write,
        split,
        uncached,
        output,
        ttft,
        duration,
        sample.attempt,
        sample.service_tier,
        sample.batch,
        (),
        sample.extra,
    )


def _by_rates(
    prices: PriceBook, sample: UsageRecord, rows: Sequence[Row]
) -> Iterable[tuple[Rates | str, Sequence[Row]]]:
    """Rows by the prices that hold for them; mostly one price for all."""
    found = prices.schedule(sample.provider, sample.model, sample.service_tier, batch=sample.batch is True)
    if not isinstance(found, Schedule):
        return [(found, rows)]
    totals, moments, daily = found.prices.edges(found.mode)
    lengths = [row[0] for row in rows] if totals else [0]
    one_tier = bisect_left(totals, min(lengths)) == bisect_left(totals, max(lengths))
    if one_tier and not moments and not daily:
        return [(found.rates(rows[0][0], rows[0][6]), rows)]
    places: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        time = row[6]
        when = None if time is None else int(time // 60) if daily else bisect_right(moments, time)
        places.setdefault((bisect_left(totals, row[0]), when), []).append(row)
    return [(found.rates(some[0][0], some[0][6]), some) for some in places.values()]


def _whole(rates: Rates, rows: Sequence[Row]) -> Cost | None:
    """The cost of all rows at once; None where they must be priced one by one."""
    if not rates.exact or rates.read is None or rates.output is None:
        return None
    totals, reads, writes, uncached, outputs, splits, *_ = zip(*rows, strict=True)
    read, output = 0 if reads[0] is None else sum(reads), sum(outputs)
    written = assumed = 0
    if any(writes):
        for tokens, split in zip(writes, splits, strict=True):
            for ttl, count in (split or {"unknown": tokens or 0}).items():
                rate = rates.written(ttl)
                if rate is None and count:
                    return None
                written += count * (rate or 0)
                assumed += count if ttl == "unknown" else 0
    per = PER_TRILLIONTH
    return Cost(
        read * rates.read // per,
        written // per,
        sum(uncached) * rates.input // per,
        output * rates.output // per,
        sum(totals) * rates.input // per,
        rates.currency,
        assumed,
    )
