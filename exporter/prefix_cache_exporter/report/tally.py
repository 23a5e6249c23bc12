"""Sums over records. Whole numbers throughout: money in trillionths, so that no order of adding changes a result."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from prefix_cache_exporter.usage.prices.cost import Unpriced
from prefix_cache_exporter.usage.prices.money import Money, cost_rows, cost_sums

from .latency import Durations

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from prefix_cache_exporter.usage.eligible import Eligibility
    from prefix_cache_exporter.usage.intake import Row
    from prefix_cache_exporter.usage.lane.sums import Sums
    from prefix_cache_exporter.usage.prices.book import PriceBook
    from prefix_cache_exporter.usage.prices.cost import Cost
    from prefix_cache_exporter.usage.record import UsageRecord

Release = tuple[str | None, str | None]
"""Template and revision of records that name none."""


class Tally:
    """What a set of records adds up to, by the measure ids of the catalogue's usage plane."""

    __slots__ = (
        "cached_prompt_tokens",
        "eligible_cached_tokens",
        "eligible_requests",
        "eligible_tokens",
        "hit_requests",
        "money",
        "output_tokens",
        "output_unknown_requests",
        "prompt_tokens",
        "reported_requests",
        "uncached_prompt_tokens",
        "unpriced",
        "unreported_prompt_tokens",
        "unreported_requests",
        "written",
    )

    def __init__(self) -> None:
        self.reported_requests = self.unreported_requests = self.hit_requests = 0
        self.prompt_tokens = self.unreported_prompt_tokens = 0
        self.cached_prompt_tokens = self.uncached_prompt_tokens = 0
        self.output_tokens = self.output_unknown_requests = 0
        self.eligible_tokens = self.eligible_cached_tokens = self.eligible_requests = 0
        self.written: Counter[str] = Counter()
        self.money: dict[str, Money] = {}
        self.unpriced: Counter[str] = Counter()

    @property
    def requests(self) -> int:
        """Every request, with or without usage."""
        return self.reported_requests + self.unreported_requests

    @property
    def written_prompt_tokens(self) -> int:
        """Tokens written, whatever their time to live."""
        return sum(self.written.values())

    @property
    def input_tokens(self) -> int:
        """Input tokens of every request whose input is known."""
        return self.prompt_tokens + self.unreported_prompt_tokens

    def add(self, record: UsageRecord, cost: Cost | Unpriced, eligible: int | None) -> None:
        """Takes in one record."""
        total, read = record.total_input_tokens, record.cache_read_tokens
        if read is None or total is None:
            self._unreported(1, total or 0)
        else:
            self._reported(1, 1 if read else 0, total, read, record.uncached_input_tokens or 0)
            self._write(record.cache_write_tokens or 0, record.cache_write_by_ttl)
            if eligible is not None:
                self.eligible_requests += 1
                self.eligible_tokens += eligible
                self.eligible_cached_tokens += min(read, eligible)
        if record.output_tokens is None:
            self.output_unknown_requests += 1
        else:
            self.output_tokens += record.output_tokens
        self._pay(cost, 1)

    def add_rows(
        self,
        sample: UsageRecord,
        rows: Sequence[Row],
        prices: PriceBook,
        eligibility: Eligibility,
        release: Release = (None, None),
    ) -> None:
        """Takes in plain records that differ in nothing but their rows; the same sums as `add` of each."""
        count = len(rows)
        totals, reads, writes, uncached, outputs, splits, *_ = zip(*rows, strict=True)
        self.output_tokens += sum(outputs)
        for cost, records in cost_rows(prices, sample, rows):
            self._pay(cost, records)
        if reads[0] is None:
            self._unreported(count, sum(totals))
            return
        self._reported(count, count - reads.count(0), sum(totals), sum(reads), sum(uncached))
        if any(writes):
            for tokens, split in zip(writes, splits, strict=True):
                self._write(tokens or 0, split)
        requests, eligible, cached = eligibility.sums(sample, rows, *release)
        self.eligible_requests += requests
        self.eligible_tokens += eligible
        self.eligible_cached_tokens += cached

    def add_sums(self, sums: Sums, prices: PriceBook) -> None:
        """Takes in what records add up to that concern no eligible prefix and whose prices are summable."""
        self.output_tokens += sums.output
        self._pay(cost_sums(prices, sums), sums.requests)
        if not sums.reported:
            self._unreported(sums.requests, sums.total)
            return
        self._reported(sums.requests, sums.hits, sums.total, sums.read, sums.uncached)
        self.written.update({ttl: tokens for ttl, tokens in sums.written.items() if tokens})

    def _unreported(self, requests: int, total: int) -> None:
        """Requests that say nothing of cache reads."""
        self.unreported_requests += requests
        self.unreported_prompt_tokens += total

    def _reported(self, requests: int, hits: int, total: int, read: int, uncached: int) -> None:
        """Requests that say how much of their input was read from a cache; `hits` of them any."""
        self.reported_requests += requests
        self.hit_requests += hits
        self.prompt_tokens += total
        self.cached_prompt_tokens += read
        self.uncached_prompt_tokens += uncached

    def _write(self, tokens: int, split: Mapping[str, int]) -> None:
        if tokens:
            self.written.update(split or {"unknown": tokens})

    def _pay(self, cost: Cost | Unpriced, records: int) -> None:
        if isinstance(cost, Unpriced):
            self.unpriced[cost.reason] += records
            return
        money = self.money.get(cost.currency)
        if money is None:
            money = self.money[cost.currency] = Money()
        money.add(cost, records)

    def merge(self, other: Tally) -> None:
        """Adds another sum."""
        for name in Tally.__slots__:
            if name not in {"written", "money", "unpriced"}:
                setattr(self, name, getattr(self, name) + getattr(other, name))
        self.written.update(other.written)
        self.unpriced.update(other.unpriced)
        for currency, money in other.money.items():
            self.money.setdefault(currency, Money()).merge(money)

    def measure(self, id_: str, currency: str | None = None) -> int:
        """A measure of the catalogue by its id; those of money need the currency."""
        if id_ in {"input_cost", "counterfactual_input_cost", "output_cost"}:
            money = self.money.get(currency or "") or Money()
            return {
                "input_cost": money.input,
                "counterfactual_input_cost": money.counterfactual,
                "output_cost": money.output,
            }[id_]
        value: int = getattr(self, id_)
        return value


Outcome = tuple[str, str]
"""How a request ended, and whether it was a first attempt or a retry."""
_MODELS = 64
"""Models per group whose break-even is shown."""


class Group:
    """One line of the report: tallies by outcome, so that failed, cancelled and retried requests stay apart."""

    __slots__ = ("durations", "models", "outcomes", "ttft")

    def __init__(self) -> None:
        self.outcomes: dict[Outcome, Tally] = {}
        self.ttft, self.durations = Durations(), Durations()
        self.models: dict[tuple[str, str | None], float | None] = {}

    def add(self, record: UsageRecord, cost: Cost | Unpriced, eligible: int | None) -> None:
        """Takes in one record."""
        self._tally(record, record.time).add(record, cost, eligible)
        if record.status != "success":  # how long a failure took says nothing of how long an answer takes
            return
        if record.ttft_seconds is not None:
            self.ttft.add(record.ttft_seconds)
        if record.duration_seconds is not None:
            self.durations.add(record.duration_seconds)

    def add_rows(
        self,
        sample: UsageRecord,
        rows: Sequence[Row],
        prices: PriceBook,
        eligibility: Eligibility,
        release: Release = (None, None),
    ) -> None:
        """Takes in plain records that differ in nothing but their rows."""
        self._tally(sample, rows[-1][6]).add_rows(sample, rows, prices, eligibility, release)
        if sample.status == "success":
            self.ttft.extend([seconds for row in rows if (seconds := row[7]) is not None])
            self.durations.extend([seconds for row in rows if (seconds := row[8]) is not None])

    def add_sums(self, sums: Sums, prices: PriceBook) -> None:
        """Takes in what records add up to."""
        self._tally(sums.sample, sums.time).add_sums(sums, prices)

    def _tally(self, record: UsageRecord, time: float | None) -> Tally:
        model = (record.provider, record.model)
        if model in self.models or len(self.models) < _MODELS:
            self.models[model] = time
        outcome = (record.status, record.extra.get("attempt", record.attempt))
        tally = self.outcomes.get(outcome)
        if tally is None:
            tally = self.outcomes[outcome] = Tally()
        return tally

    def merge(self, other: Group) -> None:
        """Adds another group."""
        for outcome, tally in other.outcomes.items():
            self.outcomes.setdefault(outcome, Tally()).merge(tally)
        for model, time in other.models.items():
            if model in self.models or len(self.models) < _MODELS:
                self.models[model] = time
        self.ttft.merge(other.ttft)
        self.durations.merge(other.durations)

    @property
    def whole(self) -> Tally:
        """All outcomes together."""
        whole = Tally()
        for tally in self.outcomes.values():
            whole.merge(tally)
        return whole
