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
from prefix_cache_exporter.usage.record import Fragment, Quarantined, UsageRecord

from .billed import Billed, BillingError
from .billing_csv import read_csv
from .document import day_of

if TYPE_CHECKING:
    from collections.abc import Mapping

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
        readings = [_read(value, usage_map, reports) for usage_map in aggregates]
        records, bad = max(readings, key=lambda reading: len(reading[0]) + len(reading[1]), default=([], []))
        if bad:
            got = f"{len(bad)} of {len(records) + len(bad)} buckets with {', '.join(sorted(set(bad)))}"
            raise BillingError(file, "file", got, "numbers of tokens")
        for record in records:
            _add(billed.setdefault((day_of(record), record.model or ""), Billed()), record)
    if not billed:
        formats = " or ".join(usage_map.format for usage_map in aggregates)
        raise BillingError(file, "file", "no usage buckets", f"aggregates like {formats}")
    return billed


def _read(value: Any, usage_map: UsageMap, reports: Mapping[str, str]) -> tuple[list[UsageRecord], list[str]]:
    """The buckets of a report by one of the aggregate maps, and why others cannot be read."""
    normaliser, merger = Normaliser(usage_map, fields=reports), Merger(usage_map)
    records, bad = [], []
    for said in normaliser.feed_decoded(value):
        for one in merger.add(said, 0.0) if isinstance(said, Fragment) else ():
            if isinstance(one, Quarantined):
                bad.append(one.reason)
            elif isinstance(one, UsageRecord) and one.total_input_tokens is not None:
                records.append(one)
    return records, bad


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
