"""Providers' aggregates by day and model: CSV exports by their columns, JSON reports by the aggregate usage maps."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefix_cache_exporter.documents import DocumentError, data_root, load_yaml, read_schema, validate
from prefix_cache_exporter.usage.maps.book import MapBook
from prefix_cache_exporter.usage.merge import Merger
from prefix_cache_exporter.usage.normaliser import Normaliser
from prefix_cache_exporter.usage.record import Fragment, UsageRecord

from .document import UNKNOWN_DAY, day_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Key = tuple[str, str]
"""Day and model."""
MEASURES = ("requests", "input", "read", "write", "output")
"""What is compared, beside cost."""


class BillingError(DocumentError):
    """A billing file that cannot be read.

    Attributes:
        file: the file.
        place: the row or the header.
        got: what stood there.
        expected: what should have.
    """

    def __init__(self, file: str, place: str, got: str, expected: str) -> None:
        self.place = place
        super().__init__(file, place, got, expected)


@dataclass(slots=True)
class Billed:
    """What a provider says for one day and model; a measure that it does not give is absent."""

    sums: dict[str, int] = field(default_factory=dict)
    cost: dict[str, Decimal] = field(default_factory=dict)

    def add(self, measure: str, amount: int) -> None:
        """Adds to a measure."""
        self.sums[measure] = self.sums.get(measure, 0) + amount


def read_billing(path: Path | str) -> dict[Key, Billed]:
    """Reads aggregates by day and model.

    Raises:
        BillingError: where the file is not one that is known here.
        OSError: where it cannot be read.
    """
    file = str(path)
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise BillingError(file, "file", "bytes that are not UTF-8", "CSV or JSON in UTF-8") from error
    return _json(text, file) if text.lstrip()[:1] in ("{", "[") else _csv(text, file)


def _json(text: str, file: str) -> dict[Key, Billed]:
    try:
        values = [json.loads(text)]
    except ValueError:
        try:
            values = [json.loads(line) for line in text.splitlines() if line.strip()]
        except ValueError as error:
            raise BillingError(file, "file", str(error), "JSON or JSON lines") from error
    values = [item for value in values for item in (value if isinstance(value, list) else [value])]
    book = MapBook()
    aggregates = [usage_map for usage_map in map(book.get, book.formats) if usage_map.aggregate]
    readings = [list(_records(values, usage_map)) for usage_map in aggregates]
    known = [[record for record in found if record.total_input_tokens is not None] for found in readings]
    best = max(known, key=len, default=[])
    if not best:
        formats = " or ".join(usage_map.format for usage_map in aggregates)
        raise BillingError(file, "file", "no usage buckets", f"aggregates like {formats}")
    billed: dict[Key, Billed] = {}
    for record in best:
        sums = billed.setdefault((day_of(record), record.model or ""), Billed())
        for measure, amount in (
            ("input", record.total_input_tokens),
            ("read", record.cache_read_tokens),
            ("write", record.cache_write_tokens),
            ("output", record.output_tokens),
        ):
            if amount is not None:
                sums.add(measure, amount)
    return billed


def _records(values: Iterable[Any], usage_map: Any) -> Iterable[UsageRecord]:
    normaliser, merger = Normaliser(usage_map), Merger(usage_map)
    for value in values:
        for said in normaliser.feed_decoded(value):
            if isinstance(said, Fragment):
                yield from (one for one in merger.add(said, 0.0) if isinstance(one, UsageRecord))


def _csv(text: str, file: str) -> dict[Key, Billed]:
    rows = csv.reader(io.StringIO(text, newline=""))
    header = [name.strip().lower().replace(" ", "_") for name in next(rows, [])]
    layout = next((one for one in _layouts() if set(one["needs"]) <= set(header)), None)
    if layout is None:
        expected = " or ".join(f"{', '.join(one['needs'])} ({one['name']})" for one in _layouts())
        raise BillingError(file, "header", ", ".join(header) or "nothing", f"columns {expected}")
    billed: dict[Key, Billed] = {}
    for number, cells in enumerate(rows, 2):
        if any(cell.strip() for cell in cells):
            row = {name: cell.strip() for name, cell in zip(header, cells, strict=False)}
            _add(billed, row, layout, file, f"row {number}")
    return billed


def _add(billed: dict[Key, Billed], row: Mapping[str, str], layout: Mapping[str, Any], file: str, place: str) -> None:
    day = _day(_first(row, layout["day"]), file, place)
    sums = billed.setdefault((day, _first(row, layout["model"])), Billed())
    counts = {
        name: [_count(row[column], file, f"{place}, {column}") for column in layout.get(name, ()) if row.get(column)]
        for name in (*MEASURES, "uncached")
    }
    if not counts["input"] and counts["uncached"]:
        counts["input"] = [counts["uncached"][0] + sum(counts["read"][:1]) + sum(counts["write"])]
    for measure in MEASURES:
        found = counts[measure]
        if found:
            sums.add(measure, sum(found) if measure == "write" else found[0])
    cost = _first(row, layout.get("cost", ()))
    if cost:
        currency = _first(row, layout.get("currency", ())).upper() or "USD"
        try:
            sums.cost[currency] = sums.cost.get(currency, Decimal(0)) + Decimal(cost.lstrip("$"))
        except InvalidOperation as error:
            raise BillingError(file, place, cost, "an amount of money") from error


def _first(row: Mapping[str, str], columns: Sequence[str]) -> str:
    return next((row[column] for column in columns if row.get(column)), "")


def _count(text: str, file: str, place: str) -> int:
    try:
        value = Decimal(text.replace(",", ""))
        if value == value.to_integral_value() and value >= 0:
            return int(value)
    except InvalidOperation:
        pass
    raise BillingError(file, place, text, "a whole number of tokens or requests")


def _day(text: str, file: str, place: str) -> str:
    if not text:
        return UNKNOWN_DAY
    try:
        if text.isdigit():
            return datetime.fromtimestamp(int(text), UTC).date().isoformat()
        moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError, OSError) as error:
        raise BillingError(file, place, text, "a day or a time") from error
    return (moment if moment.tzinfo is None else moment.astimezone(UTC)).date().isoformat()


def _layouts() -> list[dict[str, Any]]:
    path = data_root() / "billing.yaml"
    document = load_yaml(path)
    validate(document, read_schema("billing"), str(path))
    layouts: list[dict[str, Any]] = document["layouts"]
    return layouts
