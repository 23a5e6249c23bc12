"""Providers' aggregates by day and model: CSV exports by their columns, JSON reports by the aggregate usage maps."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefix_cache_exporter.documents import data_root, load_yaml, read_schema, validate
from prefix_cache_exporter.usage.maps.book import MapBook
from prefix_cache_exporter.usage.merge.merger import Merger
from prefix_cache_exporter.usage.normaliser import Normaliser
from prefix_cache_exporter.usage.record import Fragment, UsageRecord

from .billed import Billed, BillingError
from .billing_csv import read_csv
from .document import day_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from prefix_cache_exporter.usage.maps.model import UsageMap

    from .billed import Key

__all__ = ["BillingError", "read_billing"]


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
    facts = _facts()
    if text.lstrip()[:1] in ("{", "["):
        return _json(text, file, facts["reports"])
    return read_csv(text, file, facts["layouts"])


def _json(text: str, file: str, reports: Mapping[str, str]) -> dict[Key, Billed]:
    try:
        values = [json.loads(text)]
    except ValueError:
        try:
            values = [json.loads(line) for line in text.splitlines() if line.strip()]
        except ValueError as error:
            raise BillingError(file, "file", str(error), "JSON or JSON lines") from error
    except RecursionError as error:
        raise BillingError(file, "file", "JSON nested too deeply", "JSON or JSON lines") from error
    values = [item for value in values for item in (value if isinstance(value, list) else [value])]
    book = MapBook()
    aggregates = [usage_map for usage_map in map(book.get, book.formats) if usage_map.aggregate]
    billed: dict[Key, Billed] = {}
    for value in values:
        readings = (list(_records(value, usage_map, reports)) for usage_map in aggregates)
        for record in max(readings, key=len, default=[]):
            _add(billed.setdefault((day_of(record), record.model or ""), Billed()), record)
    if not billed:
        formats = " or ".join(usage_map.format for usage_map in aggregates)
        raise BillingError(file, "file", "no usage buckets", f"aggregates like {formats}")
    return billed


def _records(value: Any, usage_map: UsageMap, reports: Mapping[str, str]) -> Iterator[UsageRecord]:
    normaliser, merger = Normaliser(usage_map, fields=reports), Merger(usage_map)
    for said in normaliser.feed_decoded(value):
        if isinstance(said, Fragment):
            for one in merger.add(said, 0.0):
                if isinstance(one, UsageRecord) and one.total_input_tokens is not None:
                    yield one


def _add(sums: Billed, record: UsageRecord) -> None:
    requests = record.extra.get("requests", "")
    for measure, amount in (
        ("requests", int(requests) if requests.isascii() and requests.isdigit() else None),
        ("input", record.total_input_tokens),
        ("read", record.cache_read_tokens),
        ("write", record.cache_write_tokens),
        ("output", record.output_tokens),
    ):
        if amount is not None:
            sums.add(measure, amount)


@cache
def _facts() -> dict[str, Any]:
    path = data_root() / "billing.yaml"
    document: dict[str, Any] = load_yaml(path)
    validate(document, read_schema("billing"), str(path))
    return document
