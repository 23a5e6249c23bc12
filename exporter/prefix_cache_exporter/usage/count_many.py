"""Counts many plain records at once: one pass over the columns of a group instead of an object per record.

The sums are those of `Counting.count` over the same records, which a property test holds them to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .count import FUTURE_SECONDS, OLDEST_SECONDS
from .lane.sums import EVERYTHING
from .prices.money import cost_rows, cost_sums, record_of, summable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .count import Counting
    from .intake import Group, Row
    from .lane.sums import Bounds, Sums
    from .record import UsageRecord
    from .tally import Labels, Tally

_MINUTE = 60.0


def count_group(counting: Counting, group: Group, tally: Tally, now: float) -> None:
    """Adds a group of records that differ in nothing but their rows."""
    sample, rows = group
    labels = counting.labels(sample)
    totals, reads, writes, uncached, outputs, splits, times, firsts, durations = zip(*rows, strict=True)
    sums = tally.row(labels)
    sums.add_requests(len(rows), sum(outputs))
    if reads[0] is None:  # in all rows or in none
        sums.add_unreported(len(rows), sum(totals))
    else:
        sums.add_reported(
            len(rows), hits=len(rows) - reads.count(0), prompt=sum(totals), cached=sum(reads), uncached=sum(uncached)
        )
        if writes.count(None) < len(rows):
            _written(labels, writes, splits, tally)
        if counting.eligibility is not None:
            requests, tokens, cached = counting.eligibility.sums(
                sample, rows, labels.template, labels.template_revision
            )
            if requests:
                sums.add_eligible(requests, tokens, cached)
    if counting.prices is not None:
        # A record without a time of its own is priced as of now.
        dated = (
            rows if None not in times else [row if row[6] is not None else (*row[:6], now, *row[7:]) for row in rows]
        )
        for cost, records in cost_rows(counting.prices, sample, dated):
            counting.money(cost, labels, tally, records)
    _skew(times, tally, now)
    if sample.status == "success" and (firsts.count(None) < len(rows) or durations.count(None) < len(rows)):
        for row in rows:
            record = record_of(sample, row)
            counting.latency(record, labels, counting.eligible(record, labels), tally)
    counting.fingerprint(sample, labels, tally, len(rows))


def label_sums(counting: Counting, sample: UsageRecord, row: Row, ttls: Iterable[str]) -> tuple[Labels | None, Bounds]:
    """The labels of records like one, and for which of them sums are enough; no labels where it takes all rows."""
    labels = counting.labels(sample)
    counting.summed += 1
    bounds = EVERYTHING if counting.prices is None else summable(counting.prices, sample, row, ttls)
    eligibility = counting.eligibility
    concerned = eligibility is not None and eligibility.concerns(sample, labels.template, labels.template_revision)
    return (None, EVERYTHING) if concerned or bounds is None else (labels, bounds)


def count_sums(counting: Counting, summed: Sums, tally: Tally, now: float) -> None:  # noqa: ARG001  # as count_group
    """Adds what records add up to that `label_sums` gave labels to and whose times are not skewed."""
    labels: Labels = summed.label
    sums, count = tally.row(labels), summed.requests
    sums.add_requests(count, summed.output)
    if not summed.reported:
        sums.add_unreported(count, summed.total)
    else:
        sums.add_reported(count, hits=summed.hits, prompt=summed.total, cached=summed.read, uncached=summed.uncached)
        for ttl, amount in summed.written.items():
            tally.add("written_prompt_tokens", labels, amount, ttl)
    if counting.prices is not None:
        counting.money(cost_sums(counting.prices, summed), labels, tally, count)
    counting.fingerprint(summed.sample, labels, tally, count)


def on_time(now: float) -> tuple[float, float]:
    """Times that are not skewed, for the next minute."""
    return now - OLDEST_SECONDS + _MINUTE, now + FUTURE_SECONDS


def _written(labels: Labels, writes: Sequence[int | None], splits: Sequence[Mapping[str, int]], tally: Tally) -> None:
    by_ttl: dict[str, int] = {}
    for write, split in zip(writes, splits, strict=True):
        if write is not None:
            for ttl, amount in (split or {"unknown": write}).items():
                by_ttl[ttl] = by_ttl.get(ttl, 0) + amount
    for ttl, amount in by_ttl.items():
        tally.add("written_prompt_tokens", labels, amount, ttl)


def _skew(times: Sequence[float | None], tally: Tally, now: float) -> None:
    known = [time for time in times if time is not None]
    oldest, latest = now - OLDEST_SECONDS, now + FUTURE_SECONDS
    if known and (min(known) < oldest or max(known) > latest):
        for direction, count in (
            ("past", sum(time < oldest for time in known)),
            ("future", sum(time > latest for time in known)),
        ):
            if count:
                tally.event("skewed_records", direction, count)
