"""Price books as files: YAML of decimals to prices."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from prefix_cache_exporter.documents import load_yaml, read_schema, validate
from prefix_cache_exporter.mistakes import refuse
from prefix_cache_exporter.usage.patterns import compile_patterns

from .mistakes import check_book
from .models import Book, ModelPrices
from .rates import ANY_TTL
from .sheets import FOREVER, Price, Sheet, Span

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_STANDARD = frozenset({"default", "standard"})
"""Service tiers that pay the listed prices where no book says which do: everybody calls them so."""


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
        else _STANDARD,
        _prices(document.get("missing", {}), scale),
        (*_inherited(below, {mode.when for mode in modes}), *modes),
        [],
    )
    for number, entry in enumerate(document["models"]):
        model = ModelPrices(
            entry["id"],
            compile_patterns(entry["match"]),
            _sheets(entry["prices"], scale),
            _sheets(entry.get("modes", ()), scale),
            book,
            f"models[{number}]",
            entry.get("source", document["source"]),
            entry.get("date", document["date"]),
        )
        book.models.append(model)
    if check:
        refuse(error for model in book.models for error in model.inexact())
    return book


def _inherited(below: Book | None, said: set[str]) -> tuple[Sheet, ...]:
    """Factors of the book below for batches and tiers of which the book above says nothing.

    Prices that differ in a mode are those of the models below, and say nothing of others.
    """
    return tuple(mode for mode in below.modes if mode.factor and mode.when not in said) if below else ()


def _sheets(entries: Any, scale: Decimal) -> tuple[Sheet, ...]:
    return tuple(
        Sheet(
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


def _span(entry: Mapping[str, Any]) -> Span:
    daily = entry.get("daily")
    return Span(
        _midnight(entry["from"]) if "from" in entry else -FOREVER,
        _midnight(entry["to"]) if "to" in entry else FOREVER,
        (_second(daily["from"]), _second(daily["to"])) if daily else None,
        bool(daily and daily.get("weekdays")),
    )


def _midnight(date: str) -> float:
    return datetime.fromisoformat(date).replace(tzinfo=UTC).timestamp()


def _second(clock: str) -> int:
    hours, minutes = clock.split(":")
    return int(hours) * 3600 + int(minutes) * 60


def _prices(entry: Mapping[str, Any], scale: Decimal) -> dict[str, Price]:
    found: dict[str, Price] = {key: _price(entry[key], scale) for key in ("input", "output", "read") if key in entry}
    write = entry.get("write")
    if write is not None:
        by_ttl = write if isinstance(write, dict) else {ANY_TTL: write}
        found |= {f"write.{ttl}": _price(price, scale) for ttl, price in by_ttl.items()}
    return found


def _price(value: float | str, scale: Decimal) -> Price:
    text = str(value)
    return (Decimal(text.removesuffix("x")), True) if text.endswith("x") else (_decimal(value) * scale, False)


def _decimal(value: float | str) -> Decimal:
    # The shortest text of a float is the number that was written, up to 15 digits.
    return Decimal(str(value))
