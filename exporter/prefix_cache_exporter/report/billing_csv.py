"""Usage exports as tables: which column is what, and numbers and days as spreadsheets write them.

What can be read in two ways is a mistake, not a guess: `1,25` is no number of tokens and no amount of money.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from .billed import MEASURES, Billed, BillingError, Key
from .document import UNKNOWN_DAY

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Layout = dict[str, Any]
Row = dict[str, str]

_DELIMITERS = (",", ";", "\t")
_GROUPED = re.compile(r"[+-]?\d{1,3}([, '\u00a0\u2009\u202f]\d{3})+(?![\d,])")
"""Digits in groups of three, whatever stands between the groups."""
_UNCLEAR = re.compile(r"[+-]?\d{1,3},\d{3}")
"""Of money: thousands here, thousandths there."""
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d{1,2})?")
_PLAIN_DAY = 8
"""Digits of a day without dashes; as seconds since 1970 they would be a moment before 1974."""
_COUNT, _AMOUNT = "a whole number of tokens or requests", "an amount of money"


def read_csv(text: str, file: str, layouts: Sequence[Layout]) -> dict[Key, Billed]:
    """Reads a table with commas, semicolons or tabs between its columns.

    Raises:
        BillingError: where the header has none of the layouts, or a row or number is not what it should be.
    """
    delimiter, header, layout = _header(text, file, layouts)
    billed: dict[Key, Billed] = {}
    for number, cells in _rows(text, delimiter, file):
        place = f"row {number}"
        if len(cells) < len(header) or any(cells[len(header) :]):
            raise BillingError(file, place, f"{len(cells)} cells", f"{len(header)} as in the header")
        _add(billed, dict(zip(header, cells, strict=False)), layout, file, place)
    return billed


def _header(text: str, file: str, layouts: Sequence[Layout]) -> tuple[str, list[str], Layout]:
    first = text.split("\n", 1)[0]
    for delimiter in _DELIMITERS:
        names = [name.strip().lower().replace(" ", "_") for name in next(csv.reader([first], delimiter=delimiter), [])]
        layout = next((one for one in layouts if set(one["needs"]) <= set(names)), None)
        if layout is not None:
            used = {column for columns in layout.values() if isinstance(columns, list) for column in columns}
            twice = [name for name, count in Counter(names).items() if count > 1 and name in used]
            if twice:
                raise BillingError(file, "header", f"{twice[0]} twice", "each column once")
            if not set(layout["day"]) & set(names):
                raise BillingError(file, "header", "no column of days", f"one of {', '.join(layout['day'])}")
            return delimiter, names, layout
    expected = " or ".join(f"{', '.join(one['needs'])} ({one['name']})" for one in layouts)
    got = ", ".join(next(csv.reader([first]), []))
    raise BillingError(file, "header", got or "nothing", f"columns {expected}")


def _rows(text: str, delimiter: str, file: str) -> Iterator[tuple[int, list[str]]]:
    """Rows after the header that say anything, each with the number of its last line."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        next(reader)
        for row in reader:
            cells = [cell.strip() for cell in row]
            if any(cells):
                yield reader.line_num, cells
    except csv.Error as error:
        raise BillingError(file, f"row {reader.line_num}", str(error), "cells as CSV quotes them") from error


def _add(billed: dict[Key, Billed], row: Row, layout: Layout, file: str, place: str) -> None:
    day = _day(_first(row, layout["day"]), file, place)
    sums = billed.setdefault((day, _first(row, layout["model"])), Billed())
    counts = {
        name: [_count(row[column], file, f"{place}, {column}") for column in layout.get(name, ()) if row.get(column)]
        for name in (*MEASURES, "uncached", "write_by_ttl")
    }
    written = counts["write"][:1] or [sum(split)] if (split := counts["write_by_ttl"]) else counts["write"][:1]
    found = {name: numbers[:1] for name, numbers in counts.items()} | {"write": written}
    if not found["input"] and found["uncached"]:
        found["input"] = [found["uncached"][0] + sum(found["read"]) + sum(written)]
    for measure in MEASURES:
        for amount in found[measure]:
            sums.add(measure, amount)
    cost = _first(row, layout.get("cost", ()))
    if cost:
        sums.pay(_first(row, layout.get("currency", ())).upper() or "USD", _amount(cost, file, place))


def _first(row: Mapping[str, str], columns: Sequence[str]) -> str:
    return next((row[column] for column in columns if row.get(column)), "")


def _decimal(text: str) -> Decimal | None:
    """A number as exports write it; None where it is none, or could be another one elsewhere."""
    grouped = _GROUPED.match(text)
    if grouped:
        text = re.sub(r"[^\d+-]", "", grouped.group()) + text[grouped.end() :]
    return Decimal(text) if _NUMBER.fullmatch(text) else None


def _count(text: str, file: str, place: str) -> int:
    value = _decimal(text)
    if value is None or value < 0 or value != value.to_integral_value():
        raise BillingError(file, place, text, _COUNT)
    return int(value)


def _amount(text: str, file: str, place: str) -> Decimal:
    plain = text.replace("$", "", 1)
    value = None if _UNCLEAR.fullmatch(plain) else _decimal(plain)
    if value is None:
        raise BillingError(file, place, text, _AMOUNT)
    return value


def _day(text: str, file: str, place: str) -> str:
    """The UTC day of a date or a moment; a moment without a time zone is taken for UTC."""
    if not text:
        return UNKNOWN_DAY
    try:
        if text.isdigit() and len(text) != _PLAIN_DAY:
            return datetime.fromtimestamp(int(text), UTC).date().isoformat()
        moment = datetime.fromisoformat(text.removesuffix(" UTC"))
    except (ValueError, OverflowError, OSError) as error:
        raise BillingError(file, place, text, "a day or a time") from error
    return (moment if moment.tzinfo is None else moment.astimezone(UTC)).date().isoformat()
