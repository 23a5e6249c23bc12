"""Usage records to counters: what each record adds to which family, summed per batch before it goes to the recorder."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from prefix_cache_exporter.measures import USAGE
from prefix_cache_exporter.recorder import bound_text

from .prices.cost import Cost

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from prefix_cache_exporter.measures import Family
    from prefix_cache_exporter.recorder import Change
    from prefix_cache_exporter.release import Release

    from .eligible import Eligibility
    from .prices.book import PriceBook
    from .prices.cost import Unpriced
    from .record import UsageRecord
    from .sketch import Window

DEFAULT_BANDS = (512, 2048, 8192, 32768, 131072)
"""Upper edges of prompt-length bands, in tokens."""
TTFT_BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
DURATION_BOUNDS = (0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
"""Histogram bounds in seconds."""
OLDEST_SECONDS, FUTURE_SECONDS = 86_400.0, 300.0
"""A record's own time beyond these is counted as skewed; it is counted all the same, now."""
MOSTLY = 0.5
"""Where the eligible prefix is not known, a request counts as a cache hit for latency from this share of its input."""


class Labels(NamedTuple):
    """Label values of one record, without those of a single family."""

    provider: str
    model: str
    template: str
    template_revision: str
    namespace: str
    task: str
    status: str
    attempt: str


_LABEL_NAMES = Labels._fields
_NUMBERS = (
    "requests",
    "reported_requests",
    "unreported_requests",
    "hit_requests",
    "prompt_tokens",
    "unreported_prompt_tokens",
    "cached_prompt_tokens",
    "uncached_prompt_tokens",
    "output_tokens",
    "eligible_tokens",
    "eligible_cached_tokens",
    "eligible_requests",
)
_FAMILIES = tuple(USAGE[name] for name in _NUMBERS)
(
    REQUESTS,
    REPORTED,
    UNREPORTED,
    HIT,
    PROMPT,
    UNREPORTED_PROMPT,
    CACHED,
    UNCACHED,
    OUTPUT,
    ELIGIBLE,
    ELIGIBLE_CACHED,
    ELIGIBLE_REQUESTS,
) = range(len(_NUMBERS))
Sums = list[int | None]
"""What a label set gained, in the order of the constants above; None where nothing said a number."""


class Tally:
    """Sums of one batch of one source."""

    def __init__(self, source: str) -> None:
        self._source = source
        self.rows: dict[Labels, Sums] = {}
        self.more: dict[tuple[str, Labels, tuple[str, ...]], int] = {}
        self.seconds: dict[tuple[str, Labels, str, str], list[float]] = {}
        self.events: dict[tuple[str, str], int] = {}

    def row(self, labels: Labels) -> Sums:
        """The sums of one label set."""
        found = self.rows.get(labels)
        if found is None:
            found = self.rows[labels] = [None] * len(_NUMBERS)
        return found

    def add(self, family: str, labels: Labels, amount: int, *values: str) -> None:
        """Adds to a family that has labels of its own, given in the catalogue's order."""
        key = (family, labels, values)
        self.more[key] = self.more.get(key, 0) + amount

    def event(self, family: str, value: str = "", amount: int = 1) -> None:
        """Adds to a counter of the source; `value` is its second label."""
        key = (family, value)
        self.events[key] = self.events.get(key, 0) + amount

    def observe(self, family: str, labels: Labels, band: str, state: str, seconds: float) -> None:
        """Adds one observation to a histogram."""
        bounds = _BOUNDS[family]
        key = (family, labels, band, state)
        found = self.seconds.get(key)
        if found is None:
            found = self.seconds[key] = [0.0] + [0] * (len(bounds) + 1)
        found[0] += seconds
        found[1 + bisect_left(bounds, seconds)] += 1

    def flush(self, change: Change) -> None:
        """Hands the sums over."""
        for labels, sums in self.rows.items():
            pairs = self._pairs(labels)
            for family, amount in zip(_FAMILIES, sums, strict=True):
                if amount is not None:
                    change.add(family, pairs, amount)
        for (name, labels, values), amount in self.more.items():
            family = USAGE[name]
            own = family.labels[len(family.labels) - len(values) :]
            change.add(family, {**self._pairs(labels), **dict(zip(own, values, strict=True))}, amount)
        for (name, labels, band, state), found in self.seconds.items():
            self._histogram(change, USAGE[name], labels, (band, state), found)
        for (name, value), amount in self.events.items():
            family = USAGE[name]
            change.add(family, dict(zip(family.labels, (self._source, value), strict=False)), amount)

    def _pairs(self, labels: Labels) -> dict[str, str]:
        return {"source": self._source, **dict(zip(_LABEL_NAMES, labels, strict=True))}

    def _histogram(
        self, change: Change, family: Family, labels: Labels, values: tuple[str, str], found: list[float]
    ) -> None:
        pairs = self._pairs(labels)
        own = {name: pairs[name] for name in family.labels[: -len(values)]}
        own.update(zip(family.labels[-len(values) :], values, strict=True))
        total, *counts = found
        for bound, count in zip((*_BOUNDS[family.id], float("inf")), accumulate(counts), strict=True):
            change.add(family, own, int(count), bound_text(bound))
        change.add(family, own, total, "sum")


class Counting:
    """Counts the records of one source.

    Args:
        release: the release in force, for records that name none.
        prices: prices, or None where costs are not wanted.
        eligibility: decides eligible tokens.
        bands: upper edges of prompt-length bands.
        fingerprints: the sliding window of leading fingerprints.
    """

    def __init__(
        self,
        *,
        release: Callable[[], Release],
        prices: PriceBook | None = None,
        eligibility: Eligibility | None = None,
        bands: Sequence[int] = DEFAULT_BANDS,
        fingerprints: Window | None = None,
    ) -> None:
        self._release, self.prices, self.eligibility = release, prices, eligibility
        self._bands, self._band_names = tuple(bands), band_names(bands)
        self._fingerprints = fingerprints

    def count(self, record: UsageRecord, tally: Tally, now: float) -> None:
        """Adds one settled record; `now` is seconds since 1970."""
        labels = self.labels(record)
        sums = tally.row(labels)
        eligible = self._tokens(record, labels, sums, tally)
        if self.prices is not None:
            self.money(self.prices.cost(record, now), labels, tally)
        if record.anomalies:
            for kind in record.anomalies:
                if kind != BAD_TIME:
                    tally.event("anomalies", kind)
        self._skew(record, tally, now)
        if record.status == "success" and (record.ttft_seconds is not None or record.duration_seconds is not None):
            self.latency(record, labels, eligible, tally)
        self.fingerprint(record, labels, now)

    def labels(self, record: UsageRecord) -> Labels:
        """Label values of a record; its own release fields first, else the release in force."""
        extra = record.extra
        template, revision = extra.get("template"), extra.get("template_revision")
        if template is None or revision is None:
            in_force = self._release()
            if template is None:
                template = in_force.template
            if revision is None:
                # Another template than the one in force: nobody said which of its revisions.
                revision = in_force.template_revision if template == in_force.template else ""
        return Labels(
            record.provider,
            record.model or "",
            template,
            revision,
            extra.get("namespace", ""),
            extra.get("task", ""),
            record.status,
            extra.get("attempt", record.attempt),
        )

    def _tokens(self, record: UsageRecord, labels: Labels, sums: Sums, tally: Tally) -> int | None:
        total, read, write = record.total_input_tokens, record.cache_read_tokens, record.cache_write_tokens
        gain(sums, REQUESTS, 1)
        if record.output_tokens is not None:
            gain(sums, OUTPUT, record.output_tokens)
        if total is None or read is None:
            # Both sides of a ratio or neither: cached tokens without a total belong to no ratio.
            gain(sums, UNREPORTED, 1)
            gain(sums, REPORTED, 0)
            if total is not None:
                gain(sums, UNREPORTED_PROMPT, total)
            return None
        gain(sums, REPORTED, 1)
        gain(sums, UNREPORTED, 0)
        gain(sums, HIT, read > 0)
        gain(sums, PROMPT, total)
        gain(sums, CACHED, read)
        gain(sums, UNCACHED, record.uncached_input_tokens or 0)
        if write is not None:
            for ttl, amount in (record.cache_write_by_ttl or {"unknown": write}).items():
                tally.add("written_prompt_tokens", labels, amount, ttl)
        eligible = self.eligible(record, labels)
        if eligible is not None:
            gain(sums, ELIGIBLE, eligible)
            gain(sums, ELIGIBLE_CACHED, min(read, eligible))
            gain(sums, ELIGIBLE_REQUESTS, 1)
        return eligible

    def eligible(self, record: UsageRecord, labels: Labels) -> int | None:
        """Eligible tokens of a record, None where they are not known."""
        if self.eligibility is None or record.cache_read_tokens is None:
            return None
        return self.eligibility.eligible(record, labels.template, labels.template_revision)

    @staticmethod
    def money(cost: Cost | Unpriced, labels: Labels, tally: Tally, records: int = 1) -> None:
        """Adds the cost of some records, or why there is none."""
        if not isinstance(cost, Cost):
            tally.add("unpriced_requests", labels, records, cost.reason)
            return
        currency = cost.currency
        tally.add("priced_requests", labels, records, currency)
        tally.add("input_cost", labels, cost.read, currency, "read")
        tally.add("input_cost", labels, cost.write, currency, "write")
        tally.add("input_cost", labels, cost.uncached, currency, "uncached")
        tally.add("counterfactual_input_cost", labels, cost.counterfactual, currency)
        if cost.output is not None:
            tally.add("output_cost", labels, cost.output, currency)

    def fingerprint(self, record: UsageRecord, labels: Labels, now: float, requests: int = 1) -> None:
        """Takes the leading fingerprint that some records share into the window."""
        fingerprint = record.extra.get("leading_fingerprint")
        if fingerprint is not None and self._fingerprints is not None:
            self._fingerprints.add(labels[:4], int(fingerprint, 16), now, requests)

    @staticmethod
    def _skew(record: UsageRecord, tally: Tally, now: float) -> None:
        if record.time is None:
            if BAD_TIME in record.anomalies:
                tally.event("skewed_records", "unparsable")
        elif record.time < now - OLDEST_SECONDS:
            tally.event("skewed_records", "past")
        elif record.time > now + FUTURE_SECONDS:
            tally.event("skewed_records", "future")

    def latency(self, record: UsageRecord, labels: Labels, eligible: int | None, tally: Tally) -> None:
        """Adds a record's times to the histograms."""
        band, state = self.band(record.total_input_tokens), cache_state(record, eligible)
        if record.ttft_seconds is not None:
            tally.observe("time_to_first_token_seconds", labels, band, state, record.ttft_seconds)
        if record.duration_seconds is not None:
            tally.observe("duration_seconds", labels, band, state, record.duration_seconds)

    def band(self, total: int | None) -> str:
        """The prompt-length band of a request."""
        return "unknown" if total is None else self._band_names[bisect_left(self._bands, total)]


BAD_TIME = "bad_time"
_BOUNDS = {"time_to_first_token_seconds": TTFT_BOUNDS, "duration_seconds": DURATION_BOUNDS}


def band_names(edges: Sequence[int]) -> tuple[str, ...]:
    """Names of prompt-length bands, as `0-512`, `513-2048`, …, `over 131072`."""
    lows = [0, *(edge + 1 for edge in edges)]
    return (*(f"{low}-{edge}" for low, edge in zip(lows, edges, strict=False)), f"over {edges[-1] if edges else 0}")


def cache_state(record: UsageRecord, eligible: int | None) -> str:
    """How much of a request's reusable input came from a cache, for latency: `hit`, `partial`, `miss` or `unknown`.

    A hit is the whole eligible prefix where that is known, else at least half of the input.
    """
    read, total = record.cache_read_tokens, record.total_input_tokens
    if read is None or total is None:
        return "unknown"
    if read == 0:
        return "miss"
    whole = read >= eligible if eligible else read >= MOSTLY * total
    return "hit" if whole else "partial"


def gain(sums: Sums, place: int, amount: int) -> None:
    """Adds to one number of a label set."""
    sums[place] = (sums[place] or 0) + amount
