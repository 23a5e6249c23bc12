"""What can be wrong with a price book that its schema has passed."""

from __future__ import annotations

import math
from datetime import date
from typing import TYPE_CHECKING, Any

from prefix_cache_exporter.documents import DocumentError, place
from prefix_cache_exporter.mistakes import refuse
from prefix_cache_exporter.usage.patterns import compile_patterns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Where = tuple[str | int, ...]
_DAYS = ("from", "to", "date")


def check_book(document: Mapping[str, Any], file: str) -> None:
    """Looks for days that are none, prices that hold never, numbers that are no price, and patterns that are none.

    Raises:
        DocumentError: for all of them.
    """
    refuse((DocumentError(file, place(where), got, expected) for where, got, expected in _findings(document)), document)


def _findings(document: Mapping[str, Any]) -> Iterator[tuple[Where, str, str]]:
    for where, value in _values(document):
        if where[-1] in _DAYS and isinstance(value, str) and "daily" not in where:
            yield from _day(value, where)
        if isinstance(value, float) and not math.isfinite(value):
            yield where, str(value), "a finite number"
        if isinstance(value, dict):
            yield from _span(value, where)
        if where[-1] == "above":
            yield from _tiers(value, where)
    for number, entry in enumerate(document["models"]):
        try:
            compile_patterns(entry["match"])
        except ValueError as error:
            yield ("models", number, "match"), str(error), "a pattern like gpt-6* or /^gpt-6/"


def _day(text: str, where: Where) -> Iterator[tuple[Where, str, str]]:
    try:
        date.fromisoformat(text)
    except ValueError:
        yield where, text, "a day of the calendar"


def _span(entry: Mapping[str, Any], where: Where) -> Iterator[tuple[Where, str, str]]:
    first, end = entry.get("from"), entry.get("to")
    if "daily" in where or first is None or end is None:
        return
    if first >= end:  # as text, because days are written so that this is their order
        yield where, f"from {first} to {end}", "a first day before the day that ends it"


def _tiers(tiers: Sequence[Mapping[str, Any]], where: Where) -> Iterator[tuple[Where, str, str]]:
    seen: set[int] = set()
    for number, tier in enumerate(tiers):
        if tier["tokens"] in seen:
            yield (*where, number, "tokens"), f"{tier['tokens']} again", "each threshold once"
        seen.add(tier["tokens"])


def _values(value: Any, *where: str | int) -> Iterator[tuple[Where, Any]]:
    """Every value within a document with its place, outer ones first."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*where, key), inner
        yield from _values(inner, *where, key)
