"""Usage records to counters: what each record adds to which family."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from .bands import DEFAULT_BANDS, band_names, cache_state
from .prices.cost import Cost
from .tally import Labels

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from prefix_cache_exporter.release import Release

    from .eligible import Eligibility
    from .prices.book import PriceBook
    from .prices.cost import Unpriced
    from .record import UsageRecord
    from .tally import Tally, TokenSums

OLDEST_SECONDS, FUTURE_SECONDS = 86_400.0, 300.0
"""A record's own time beyond these is counted as skewed; it is counted all the same, now."""
BAD_TIME = "bad_time"


class Counting:
    """Counts the records of one source.

    Args:
        release: the release in force, for records that name none.
        prices: prices, or None where costs are not wanted.
        eligibility: decides eligible tokens.
        bands: upper edges of prompt-length bands.

    Attributes:
        summed: label sets for which sums were begun, since the start.
    """

    def __init__(
        self,
        *,
        release: Callable[[], Release],
        prices: PriceBook | None = None,
        eligibility: Eligibility | None = None,
        bands: Sequence[int] = DEFAULT_BANDS,
    ) -> None:
        self.summed = 0
        self._release, self.prices, self.eligibility = release, prices, eligibility
        self._bands, self._band_names = tuple(bands), band_names(bands)

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
        self.fingerprint(record, labels, tally)

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

    def _tokens(self, record: UsageRecord, labels: Labels, sums: TokenSums, tally: Tally) -> int | None:
        total, read, write = record.total_input_tokens, record.cache_read_tokens, record.cache_write_tokens
        sums.add_requests(1, record.output_tokens)
        if total is None or read is None:
            sums.add_unreported(1, total)
            return None
        sums.add_reported(1, hits=read > 0, prompt=total, cached=read, uncached=record.uncached_input_tokens or 0)
        if write is not None:
            for ttl, amount in (record.cache_write_by_ttl or {"unknown": write}).items():
                tally.add("written_prompt_tokens", labels, amount, ttl)
        eligible = self.eligible(record, labels)
        if eligible is not None:
            sums.add_eligible(1, eligible, min(read, eligible))
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

    @staticmethod
    def fingerprint(record: UsageRecord, labels: Labels, tally: Tally, requests: int = 1) -> None:
        """Adds the leading fingerprint that some records share."""
        fingerprint = record.extra.get("leading_fingerprint")
        if fingerprint is not None:
            tally.fingerprint(labels, int(fingerprint, 16), requests)

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
