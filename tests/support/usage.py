"""Usage lines as records, the shortest way."""

from __future__ import annotations

import json
from typing import Any

from prefix_cache_exporter.usage.intake import Intake
from prefix_cache_exporter.usage.maps.book import get_map
from prefix_cache_exporter.usage.record import UsageRecord

COUNTS = (
    "total_input_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "uncached_input_tokens",
    "output_tokens",
)

# Usage objects of the same request as the families tell it, and the numbers that these come to.
FULL = {"prompt_tokens": 900, "completion_tokens": 50, "total_tokens": 950}
HIT = {**FULL, "prompt_tokens_details": {"cached_tokens": 640}}
ANTHROPIC = {"input_tokens": 40, "cache_read_input_tokens": 800, "cache_creation_input_tokens": 60, "output_tokens": 50}
RESPONSES = {
    "input_tokens": 900,
    "output_tokens": 50,
    "total_tokens": 950,
    "input_tokens_details": {"cached_tokens": 640},
}
INCLUSIVE = (900, 640, None, 260, 50)
UNKNOWN = (900, None, None, None, 50)
EXCLUSIVE = (900, 800, 60, 40, 50)


def encode(line: Any) -> bytes:
    """A line of a log; text stays as it is."""
    return line.encode() if isinstance(line, str) else json.dumps(line).encode()


def outcomes(name: str, *lines: Any, includes: bool | None = None, **options: Any) -> list[Any]:
    """All that becomes of the lines of one file, the end included."""
    intake = Intake(get_map(name), input_includes_cache=includes, **options)
    found = intake.take([encode(line) for line in lines], 0.0, "file")
    return [*found, *intake.settle(0.0, everything=True)]


def settled(name: str, *lines: Any, includes: bool | None = None, **options: Any) -> list[UsageRecord]:
    """The records among them."""
    return [item for item in outcomes(name, *lines, includes=includes, **options) if isinstance(item, UsageRecord)]


def counts(record: UsageRecord) -> tuple[int | None, ...]:
    """Total, read, write, uncached and output tokens."""
    return tuple(getattr(record, name) for name in COUNTS)


def sums(records: list[UsageRecord]) -> dict[str, Any]:
    """Each count summed over the records that know it, None where none does."""
    found: dict[str, Any] = {}
    for name in COUNTS:
        known = [count for record in records if (count := getattr(record, name)) is not None]
        found[name] = sum(known) if known else None
    by_ttl: dict[str, int] = {}
    for record in records:
        for ttl, count in record.cache_write_by_ttl.items():
            by_ttl[ttl] = by_ttl.get(ttl, 0) + count
    return {**found, "cache_write_by_ttl": by_ttl}
