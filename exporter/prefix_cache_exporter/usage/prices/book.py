"""Which prices hold for a record: the shipped books, and the user's laid over them."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from prefix_cache_exporter.documents import data_root
from prefix_cache_exporter.mistakes import Mistakes
from prefix_cache_exporter.usage.patterns import spellings
from prefix_cache_exporter.usage.providers import Providers, shipped_providers

from .cost import Cost, Unpriced, priced
from .files import load_book
from .models import Book, ModelPrices, Schedule

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from prefix_cache_exporter.usage.record import UsageRecord

    from .rates import Rates

BATCH = "batch"
"""The mode of asynchronous batches; other modes are named as records name their service tier."""
_REMEMBERED = 4096
"""Models that lookups are remembered for; model names come from logs, so there must be a bound."""


class PriceBook:
    """The shipped books with the user's laid over them."""

    def __init__(
        self,
        user: Iterable[Book] = (),
        *,
        folder: Path | None = None,
        providers: Providers | None = None,
    ) -> None:
        self._providers = providers or shipped_providers()
        self._folder = folder or data_root() / "prices"
        self._user: dict[str, list[Book]] = {}
        for book in user:
            self._user.setdefault(self._providers.canonical(book.provider), []).append(book)
        self._shipped: dict[str, Book | None] = {}
        self._found: dict[tuple[str | None, str | None, str | None, bool], Schedule | Rates | str] = {}

    @classmethod
    def load(cls, files: Iterable[Path | str] = (), *, currency: str = "USD", folder: Path | None = None) -> PriceBook:
        """Reads the user's books over the shipped ones; of two user books, the later one wins.

        Args:
            files: price books of the user.
            currency: the currency of user books that name none.
            folder: where the shipped books are; given only by tests.

        Raises:
            DocumentError: where user's books cannot be used, for all that is wrong with them.
        """
        shipped = cls(folder=folder)
        books = []
        wrong = Mistakes()
        for file in files:
            with wrong:
                provider = load_book(file, currency=currency, check=True).provider
                below = shipped.shipped(shipped._providers.canonical(provider))
                books.append(load_book(file, currency=currency, below=below, check=True))
        wrong.refuse()
        return cls(reversed(books), folder=folder)

    def shipped(self, provider: str) -> Book | None:
        """The shipped book of a canonical provider name, read at its first use."""
        if provider not in self._shipped:
            path = self._folder / f"{provider}.yaml"
            known = provider in self._providers.serves and path.is_file()
            self._shipped[provider] = load_book(path, check=False) if known else None
        return self._shipped[provider]

    def cost(self, record: UsageRecord, at: float | None = None) -> Cost | Unpriced:
        """Prices one record.

        Args:
            record: a settled record; components under other models are priced by their own and added.
            at: the time to price a record at that carries none, in seconds since 1970.
        """
        if record.components:
            return self._sum([self.cost(part, at) for part in record.components])
        reason = _unpriceable(record)
        if reason is not None:
            return Unpriced(reason)
        rates = self.rates(
            record.provider,
            record.model,
            record.total_input_tokens or 0,
            time=at if record.time is None else record.time,
            service_tier=record.service_tier,
            batch=record.batch is True,
        )
        return Unpriced(rates) if isinstance(rates, str) else priced(record, rates)

    def rates(
        self,
        provider: str | None,
        model: str | None,
        total: int = 0,
        *,
        time: float | None = None,
        service_tier: str | None = None,
        batch: bool = False,
    ) -> Rates | str:
        """The prices of a request, or the reason why there are none."""
        found = self.schedule(provider, model, service_tier, batch=batch)
        return found.rates(total, time) if isinstance(found, Schedule) else found

    def schedule(
        self, provider: str | None, model: str | None, service_tier: str | None = None, *, batch: bool = False
    ) -> Schedule | Rates | str:
        """The prices of a model where they change, its only prices, or the reason why there are none."""
        key = (provider, model, service_tier, batch)
        found = self._found.get(key)
        if found is None:
            if len(self._found) >= _REMEMBERED:
                self._found.clear()
            found = self._found[key] = self._look_up(*key)
        return found

    def _look_up(
        self, provider: str | None, model: str | None, service_tier: str | None, batch: bool
    ) -> Schedule | Rates | str:
        prices = self._find(provider, model)
        if isinstance(prices, str):
            return prices
        mode = service_tier.lower() if service_tier else None
        if batch or mode == BATCH:
            # What a tier adds to a batch counts where the book has a price for both together.
            mode = both if prices.offers(both := f"{BATCH}-{mode}") else BATCH
        elif mode in prices.book.standard_tiers:
            mode = None
        return prices.constant(mode) or Schedule(prices, mode)

    def _find(self, provider: str | None, model: str | None) -> ModelPrices | str:
        known = self._providers.serves.keys() | self._user.keys()
        name = self._providers.canonical(provider) if provider else None
        if name not in known and model and "/" in model:
            # A route like anthropic/claude-… says whose model it is where the gateway itself sells none.
            name = self._providers.canonical(model.split("/", 1)[0])
        if name is None or name not in known:
            return "unknown_provider"
        if model:
            for candidate in self._providers.with_served(name):
                books: list[Book] = [*self._user.get(candidate, ())]
                shipped = self.shipped(candidate)
                if shipped is not None:
                    books.append(shipped)
                found = next((m for book in books for name in spellings(model) if (m := book.find(name))), None)
                if found is not None:
                    return found
        return "unknown_model"

    @staticmethod
    def _sum(parts: list[Cost | Unpriced]) -> Cost | Unpriced:
        costs = []
        for part in parts:
            if isinstance(part, Unpriced):
                return part
            costs.append(part)
        if len({cost.currency for cost in costs}) > 1:
            return Unpriced("mixed_currencies")
        return reduce(Cost.__add__, costs)


def _unpriceable(record: UsageRecord) -> str | None:
    if record.quality == "served_from_gateway_cache":
        return "served_from_gateway_cache"
    if record.total_input_tokens is None:
        return "usage_missing"
    # A source without cache numbers whose input is all there is leaves the reads unknown and the uncached tokens known.
    return "cache_unknown" if record.uncached_input_tokens is None else None
