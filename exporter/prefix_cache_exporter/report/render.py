"""One document as text for a terminal, as Markdown, as JSON and as CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from prefix_cache_exporter.measures import RATIOS

from .sections import Section, heading, labels_of, reconciliation, sections
from .table import as_csv, as_markdown, as_text, markdown, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .table import Cell


def to_text(document: Mapping[str, Any]) -> str:
    """For people at a terminal."""
    lines = [printable(line) for line in heading(document)]
    for name, group in _all(document):
        lines += ["", printable(name)]
        for section in sections(group):
            if section.rows:
                lines += _text(section)
    compared = reconciliation(document)
    if compared is not None:
        lines += ["", *_text(compared)]
    return "\n".join(lines) + "\n"


def to_markdown(document: Mapping[str, Any]) -> str:
    """For tickets and reviews."""
    lines = ["# Prefix-cache report", "", *(f"- {markdown(line)}" for line in heading(document))]
    for name, group in _all(document):
        lines += ["", f"## {markdown(name)}"]
        for section in sections(group):
            if section.rows:
                lines += _markdown(section, "###")
    compared = reconciliation(document)
    if compared is not None:
        lines += _markdown(compared, "##")
    return "\n".join(lines) + "\n"


def to_json(document: Mapping[str, Any]) -> str:
    """For programs; money is exact."""
    encoded = msgspec.json.Encoder(decimal_format="number").encode(document)
    return msgspec.json.format(encoded, indent=2).decode() + "\n"


def to_csv(document: Mapping[str, Any]) -> str:
    """One row per group, the first for all; ratios with both sides. Of a comparison, the differences instead."""
    compared = reconciliation(document)
    if compared is not None:
        differences = document["reconciliation"]["differences"]
        return as_csv(compared.header, [[row[name] for name in compared.header] for row in differences])
    rows = [dict(_flat(document["total"], dict.fromkeys(document["by"], "*")))]
    rows += [dict(_flat(group, group["labels"])) for group in document["groups"]]
    header = list(dict.fromkeys(key for row in rows for key in row))
    return as_csv(header, [[row.get(key) for key in header] for row in rows])


def _text(section: Section) -> list[str]:
    rows = as_text(section.header, section.rows, "    ") if section.rows else []
    return [f"  {section.title}", *rows, *([f"    note: {section.note}"] if section.note else [])]


def _markdown(section: Section, level: str) -> list[str]:
    lines = ["", f"{level} {section.title[0].upper()}{section.title[1:]}"]
    if section.rows:
        lines += ["", *as_markdown(section.header, section.rows)]
    return lines + (["", f"Note: {section.note}."] if section.note else [])


def _all(document: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield "all requests", document["total"]
    for group in document["groups"]:
        yield labels_of(group), group


def _flat(group: Mapping[str, Any], labels: Mapping[str, str]) -> Iterator[tuple[str, Cell]]:
    yield from labels.items()
    yield "requests", group["requests"]
    for row in group["outcomes"]:
        yield f"requests_{row['status']}_{row['attempt']}", row["requests"]
    for ratio in RATIOS:
        found = group["ratios"].get(ratio.id)
        if found is None:
            continue
        for currency, sides in (found.get("by_currency") or {"": found}).items():
            name = f"{ratio.id}_{currency}" if currency else ratio.id
            yield f"{name}_numerator", sides["numerator"]
            yield f"{name}_denominator", sides["denominator"]
            yield name, sides["value"]
    for name, value in group["tokens"].items():
        if isinstance(value, dict):
            yield from ((f"{name}_{ttl}", tokens) for ttl, tokens in value.items())
        else:
            yield name, value
    for currency, cost in group["cost"].items():
        yield from ((f"{name}_{currency}", value) for name, value in cost.items())
    yield from ((f"unpriced_{reason}", count) for reason, count in group["unpriced_requests"].items())
    for measure in ("time_to_first_token_seconds", "duration_seconds"):
        yield f"{measure}_count", group[measure]["count"]
        yield from ((f"{measure}_{name}", group[measure][name]["value"]) for name in ("p50", "p95", "p99"))
