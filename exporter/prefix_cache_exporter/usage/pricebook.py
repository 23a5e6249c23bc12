"""Price books as data: which prices hold for a provider's model, at a time, in a service tier, above a prompt length.

Prices stand in the books as decimals; they leave here as whole numbers of 10^-18 of the currency per token, so that the
arithmetic after this module is exact.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from prefix_cache_exporter.documents import DocumentError, load_yaml, read_schema, validate
from prefix_cache_exporter.measures.usage import MONEY_SCALE

from .patterns import compile_patterns
from .price_mistakes import check_book

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator, Mapping
    from pathlib import Path

ATTO = 10**18
"""Units of `Rates` per currency unit."""
PER_TRILLIONTH = ATTO // MONEY_SCALE
"""Units of `Rates` per trillionth."""
BATCH = "batch"
"""The mode of asynchronous batches; other modes are named as records name their service tier."""
_DAY = 86400
_ANY_TTL = "*"


@dataclass(frozen=True, slots=True)
class Rates:
    """What one token costs, in 10^-18 of `currency`. None: the book does not say.

    Attributes:
        input: a token that is neither read from nor written to a cache.
        read: a token read from a cache.
        write: a token written, by time to live; the whole rate, not a surcharge on `input`.
        default_ttl: the time to live of written tokens whose record does not say.
        source, date: where the price stands and when it was read there.
    """

    input: int
    output: int | None
    read: int | None
    write: Mapping[str, int]
    default_ttl: str | None
    currency: str
    source: str
    date: str

    @property
    def exact(self) -> bool:
        """Whether every rate is a whole number of trillionths, so that nothing is ever rounded."""
        return not any(
            (rate or 0) % PER_TRILLIONTH for rate in (self.input, self.output, self.read, *self.write.values())
        )

    def written(self, ttl: str) -> int | None:
        """The rate of a token written with a time to live, `unknown` included."""
        if ttl == "unknown" and self.default_ttl is not None and ttl not in self.write:
            ttl = self.default_ttl
        return self.write.get(ttl, self.write.get(_ANY_TTL))


@dataclass(frozen=True, slots=True)
class _Span:
    """When a price holds, in seconds since 1970 and seconds of the UTC day."""

    start: float
    end: float
    daily: tuple[int, int] | None

    @property
    def always(self) -> bool:
        return self.daily is None and self.start == -_FOREVER and self.end == _FOREVER

    def holds(self, time: float) -> bool:
        if not self.start <= time < self.end:
            return False
        if self.daily is None:
            return True
        first, last = self.daily
        second = int(time) % _DAY
        return first <= second < last if first < last else second >= first or second < last


_FOREVER = float("inf")
_Price = tuple[Decimal, bool]
"""A price per token, or (True) a multiple of the input price."""


@dataclass(frozen=True, slots=True)
class _Sheet:
    """The prices of one period or mode: those of short prompts, and what changes above a total input."""

    span: _Span
    base: Mapping[str, _Price]
    above: tuple[tuple[int, Mapping[str, _Price]], ...] = ()
    factor: Decimal | None = None
    when: str = ""

    def at(self, total: int) -> dict[str, _Price]:
        prices = dict(self.base)
        for tokens, changed in self.above:
            if total > tokens:
                prices |= changed
        return prices


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


@dataclass(frozen=True, slots=True)
class Schedule:
    """The prices of a model in one mode."""

    prices: ModelPrices
    mode: str | None

    def rates(self, total: int, time: float | None) -> Rates | str:
        """See `ModelPrices.rates`."""
        return self.prices.rates(total, time, self.mode)


@dataclass(frozen=True, slots=True)
class ModelPrices:
    """One model of a book: its prices over time and what other service tiers change."""

    id: str
    pattern: re.Pattern[str]
    periods: tuple[_Sheet, ...]
    modes: tuple[_Sheet, ...]
    book: Book
    place: str
    source: str
    date: str
    _rates: dict[tuple[int, int, int], Rates] = field(default_factory=dict, compare=False)

    def rates(self, total: int, time: float | None, mode: str | None) -> Rates | str:
        """The prices of a request, or the reason why there are none.

        Args:
            total: total input tokens, which decide the length tier.
            time: when the request was made, in seconds since 1970; None where the record does not say.
            mode: `batch`, a service tier, or None for the listed prices.
        """
        period = _in_force(self.periods, time)
        if isinstance(period, str):
            return period
        change: _Sheet | None = None
        if mode is not None:
            offered = [sheet for sheet in (*self.book.modes, *self.modes) if sheet.when == mode]
            found = _in_force(offered, time)
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

    def edges(self, mode: str | None) -> Edges:
        """Where the prices of requests in a mode can change."""
        sheets = [*self.periods, *(sheet for sheet in (*self.book.modes, *self.modes) if sheet.when == mode)]
        moments = {moment for sheet in sheets for moment in (sheet.span.start, sheet.span.end)} - {-_FOREVER, _FOREVER}
        return Edges(
            sorted({tokens for sheet in sheets for tokens, _ in sheet.above}),
            sorted(moments),
            any(sheet.span.daily for sheet in sheets),
        )

    def constant(self, mode: str | None) -> Rates | None:
        """The prices where neither time nor prompt length matters, as with most models."""
        plain = mode is None and len(self.periods) == 1 and self.periods[0].span.always and not self.periods[0].above
        return self._resolve(self.periods[0], None, 0) if plain else None

    def thresholds(self, period: _Sheet, change: _Sheet | None) -> list[int]:
        """The total inputs above which a price changes."""
        return sorted({tokens for sheet in (period, change) if sheet for tokens, _ in sheet.above})

    def every(self) -> Iterator[Rates]:
        """Every price that this model can come to; raises where one of them is too fine to be exact."""
        for period in self.periods:
            for change in (None, *self.book.modes, *self.modes):
                for total in (0, *(tokens + 1 for tokens in self.thresholds(period, change))):
                    yield self._resolve(period, change, total)

    def _resolve(self, period: _Sheet, change: _Sheet | None, total: int) -> Rates:
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


@dataclass(frozen=True, slots=True)
class Book:
    """One price book: what one provider charges."""

    file: str
    provider: str
    currency: str
    default_ttl: str | None
    standard_tiers: frozenset[str]
    missing: Mapping[str, _Price]
    modes: tuple[_Sheet, ...]
    models: list[ModelPrices]

    def find(self, spelling: str) -> ModelPrices | None:
        """The first model whose patterns match a lower-case name."""
        return next((model for model in self.models if model.pattern.search(spelling)), None)


def load_book(path: Path | str, *, currency: str = "USD", below: Book | None = None, check: bool = True) -> Book:
    """Reads one price book.

    Args:
        path: the file.
        currency: the currency of a book that names none.
        below: the book that this one is laid over; says what this one leaves out about tiers and times to live.
        check: hold it against the schema and try every price; shipped books are held against it by the tests instead.

    Raises:
        DocumentError: where the book cannot be used.
    """
    file = str(path)
    document = load_yaml(path)
    if check:
        validate(document, read_schema("prices"), file)
        check_book(document, file)
    scale = Decimal(1) / document.get("per", 1_000_000)
    modes = _sheets(document.get("modes", ()), scale)
    tiers = document.get("standard_tiers")
    book = Book(
        file,
        document["provider"],
        document.get("currency", currency),
        document.get("default_ttl", below.default_ttl if below else None),
        frozenset(tier.lower() for tier in tiers)
        if tiers is not None
        else below.standard_tiers
        if below
        else frozenset(),
        _prices(document.get("missing", {}), scale),
        modes if "modes" in document or below is None else tuple(mode for mode in below.modes if mode.factor),
        [],
    )
    for number, entry in enumerate(document["models"]):
        place = f"models[{number}]"
        try:
            pattern = compile_patterns(entry["match"])
        except ValueError as error:
            raise DocumentError(file, f"{place}.match", str(error), "a pattern like gpt-6* or /^gpt-6/") from error
        model = ModelPrices(
            entry["id"],
            pattern,
            _sheets(entry["prices"], scale),
            _sheets(entry.get("modes", ()), scale),
            book,
            place,
            entry.get("source", document["source"]),
            entry.get("date", document["date"]),
        )
        book.models.append(model)
        if check:
            for _ in model.every():
                pass
    return book


def _in_force(sheets: tuple[_Sheet, ...] | list[_Sheet], time: float | None) -> _Sheet | str:
    """Of several prices that hold, the last; a record without a time is priced only where time does not matter."""
    if time is None:
        if any(not sheet.span.always for sheet in sheets):
            return "time_unknown"
        return sheets[-1] if sheets else "no_price_for_time"
    return next((sheet for sheet in reversed(sheets) if sheet.span.holds(time)), "no_price_for_time")


def _sheets(entries: Any, scale: Decimal) -> tuple[_Sheet, ...]:
    return tuple(
        _Sheet(
            _span(entry),
            _prices(entry, scale),
            tuple((tier["tokens"], _prices(tier, scale)) for tier in sorted(entry.get("above", ()), key=_tokens)),
            _decimal(entry["factor"]) if "factor" in entry else None,
            str(entry.get("when", "")).lower(),
        )
        for entry in entries
    )


def _tokens(tier: Mapping[str, Any]) -> int:
    tokens: int = tier["tokens"]
    return tokens


def _span(entry: Mapping[str, Any]) -> _Span:
    daily = entry.get("daily")
    return _Span(
        _midnight(entry["from"]) if "from" in entry else -_FOREVER,
        _midnight(entry["to"]) if "to" in entry else _FOREVER,
        (_second(daily["from"]), _second(daily["to"])) if daily else None,
    )


def _midnight(date: str) -> float:
    return datetime.fromisoformat(date).replace(tzinfo=UTC).timestamp()


def _second(clock: str) -> int:
    hours, minutes = clock.split(":")
    return int(hours) * 3600 + int(minutes) * 60


def _prices(entry: Mapping[str, Any], scale: Decimal) -> dict[str, _Price]:
    found: dict[str, _Price] = {key: _price(entry[key], scale) for key in ("input", "output", "read") if key in entry}
    write = entry.get("write")
    if write is not None:
        by_ttl = write if isinstance(write, dict) else {_ANY_TTL: write}
        found |= {f"write.{ttl}": _price(price, scale) for ttl, price in by_ttl.items()}
    return found


def _price(value: float | str, scale: Decimal) -> _Price:
    text = str(value)
    return (Decimal(text.removesuffix("x")), True) if text.endswith("x") else (_decimal(value) * scale, False)


def _decimal(value: float | str) -> Decimal:
    # The shortest text of a float is the number that was written, up to 15 digits.
    return Decimal(str(value))
