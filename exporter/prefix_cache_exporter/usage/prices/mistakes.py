"""What can be wrong with a price book that its schema has passed."""

from __future__ import annotations

import math
from datetime import date
from typing import TYPE_CHECKING, Any

from prefix_cache_exporter.documents import DocumentError, place

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Where = tuple[str | int, ...]
_DAYS = ("from", "to", "date")


def check_book(document: Mapping[str, Any], file: str) -> None:
    """Looks for days that are none, prices that hold never, and numbers that are no price.

    Raises:
        DocumentError: for the first of them.
    """
    for where, value in _values(document):
        if where[-1] in _DAYS and isinstance(value, str) and "daily" not in where:
            _check_day(value, file, where)
        if isinstance(value, float) and not math.isfinite(value):
            raise DocumentError(file, place(where), str(value), "a finite number")
        if isinstance(value, dict):
            _check_span(value, file, where)
        if where[-1] == "above":
            _check_tiers(value, file, where)


def _check_day(text: str, file: str, where: Where) -> None:
    try:
        date.fromisoformat(text)
    except ValueError as error:
        raise DocumentError(file, place(where), text, "a day of the calendar") from error


def _check_span(entry: Mapping[str, Any], file: str, where: Where) -> None:
    first, end = entry.get("from"), entry.get("to")
    if "daily" in where or first is None or end is None:
        return
    if first >= end:  # as text, because days are written so that this is their order
        raise DocumentError(file, place(where), f"from {first} to {end}", "a first day before the day that ends it")


def _check_tiers(tiers: Sequence[Mapping[str, Any]], file: str, where: Where) -> None:
    seen: set[int] = set()
    for number, tier in enumerate(tiers):
        if tier["tokens"] in seen:
            raise DocumentError(
                file, place((*where, number, "tokens")), f"{tier['tokens']} again", "each threshold once"
            )
        seen.add(tier["tokens"])


def _values(value: Any, *where: str | int) -> Iterator[tuple[Where, Any]]:
    """Every value within a document with its place, outer ones first."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*where, key), inner
        yield from _values(inner, *where, key)
