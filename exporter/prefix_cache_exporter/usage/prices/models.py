"""The prices of a model over time, prompt length and service tiers, and the book that they stand in."""

from __future__ import annotations

from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from prefix_cache_exporter.documents import DocumentError

from .rates import ATTO, Rates
from .sheets import FOREVER, Price, Sheet, in_force

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator, Mapping


class Edges(NamedTuple):
    """Where prices can change: two requests between the same edges cost the same.

    Attributes:
        totals: a total input above one of these is in another tier than one that is not.
        moments: in seconds since 1970; the moment itself belongs to what follows.
        daily: whether the time of day matters too.
    """

    totals: list[int]
    moments: list[float]
    daily: bool


class Schedule(msgspec.Struct, frozen=True):
    """The prices of a model in one mode."""

    prices: ModelPrices
    mode: str | None

    def rates(self, total: int, time: float | None) -> Rates | str:
        """See `ModelPrices.rates`."""
        return self.prices.rates(total, time, self.mode)


class ModelPrices(msgspec.Struct, frozen=True):
    """One model of a book: its prices over time and what other service tiers change."""

    id: str
    pattern: re.Pattern[str]
    periods: tuple[Sheet, ...]
    modes: tuple[Sheet, ...]
    book: Book
    place: str
    source: str
    date: str
    _rates: dict[tuple[int, int, int], Rates] = msgspec.field(default_factory=dict)

    def rates(self, total: int, time: float | None, mode: str | None) -> Rates | str:
        """The prices of a request, or the reason why there are none.

        Args:
            total: total input tokens, which decide the length tier.
            time: when the request was made, in seconds since 1970; None where the record does not say.
            mode: `batch`, a service tier, or None for the listed prices.
        """
        period = in_force(self.periods, time)
        if isinstance(period, str):
            return period
        change: Sheet | None = None
        if mode is not None:
            offered = [sheet for sheet in (*self.book.modes, *self.modes) if sheet.when == mode]
            found = in_force(offered, time)
            if isinstance(found, str):
                return "no_price_for_tier" if found == "no_price_for_time" else found
            change = found
        tier = 0
        if period.above or (change is not None and change.above):
            tier = sum(total > tokens for tokens in self.thresholds(period, change))
        key = (id(period), id(change), tier)
        if key not in self._rates:
            self._rates[key] = self._resolve(period, change, total)
        return self._rates[key]

    def offers(self, mode: str) -> bool:
        """Whether there are prices for a mode at some time."""
        return any(sheet.when == mode for sheet in (*self.book.modes, *self.modes))

    def edges(self, mode: str | None) -> Edges:
        """Where the prices of requests in a mode can change."""
        sheets = [*self.periods, *(sheet for sheet in (*self.book.modes, *self.modes) if sheet.when == mode)]
        moments = {moment for sheet in sheets for moment in (sheet.span.start, sheet.span.end)} - {-FOREVER, FOREVER}
        return Edges(
            sorted({tokens for sheet in sheets for tokens, _ in sheet.above}),
            sorted(moments),
            any(sheet.span.daily for sheet in sheets),
        )

    def constant(self, mode: str | None) -> Rates | None:
        """The prices where neither time nor prompt length matters, as with most models."""
        plain = mode is None and len(self.periods) == 1 and self.periods[0].span.always and not self.periods[0].above
        return self._resolve(self.periods[0], None, 0) if plain else None

    def thresholds(self, period: Sheet, change: Sheet | None) -> list[int]:
        """The total inputs above which a price changes."""
        return sorted({tokens for sheet in (period, change) if sheet for tokens, _ in sheet.above})

    def inexact(self) -> Iterator[DocumentError]:
        """Of every price that this model can come to, those that are too fine to be exact."""
        for period in self.periods:
            for change in (None, *self.book.modes, *self.modes):
                for total in (0, *(tokens + 1 for tokens in self.thresholds(period, change))):
                    try:
                        self._resolve(period, change, total)
                    except DocumentError as error:
                        yield error

    def _resolve(self, period: Sheet, change: Sheet | None, total: int) -> Rates:
        prices = period.at(total)
        listed = {key.partition(".")[0] for key in prices}
        prices = {
            key: price for key, price in self.book.missing.items() if key.partition(".")[0] not in listed
        } | prices
        factor = Decimal(1)
        if change is not None:
            prices |= change.at(total)
            factor = change.factor or factor
        base = prices["input"][0]
        exact = {}
        for key, (price, relative) in prices.items():
            amount = (price * base if relative else price) * factor * ATTO
            if amount != amount.to_integral_value():
                got = f"{key} of {price * factor:f} per token"
                raise DocumentError(self.book.file, self.place, got, "at most 18 decimals per token")
            exact[key] = int(amount)
        write = {key.removeprefix("write."): rate for key, rate in exact.items() if key.startswith("write.")}
        return Rates(
            exact["input"],
            exact.get("output"),
            exact.get("read"),
            MappingProxyType(write),
            self.book.default_ttl,
            self.book.currency,
            self.source,
            self.date,
        )


class Book(msgspec.Struct, frozen=True):
    """One price book: what one provider charges."""

    file: str
    provider: str
    currency: str
    default_ttl: str | None
    standard_tiers: frozenset[str]
    missing: Mapping[str, Price]
    modes: tuple[Sheet, ...]
    models: list[ModelPrices]

    def find(self, spelling: str) -> ModelPrices | None:
        """The first model whose patterns match a lower-case name."""
        return next((model for model in self.models if model.pattern.search(spelling)), None)
