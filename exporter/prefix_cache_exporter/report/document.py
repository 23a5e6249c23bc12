"""Runs a report: records to groups, groups to one document."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .summary import summarise
from .tally import Group

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from prefix_cache_exporter.usage.eligible import Eligibility
    from prefix_cache_exporter.usage.price import PriceBook
    from prefix_cache_exporter.usage.record import UsageRecord

    from .reading import Reading

OTHER = "other"
"""Where records go whose group would be one too many; their sums stay exact."""
UNKNOWN_DAY = "unknown"


@lru_cache(maxsize=4096)
def _date(day: int) -> str:
    try:
        return datetime.fromtimestamp(day * 86400, UTC).date().isoformat()
    except (OverflowError, ValueError, OSError):  # a time beyond the calendar is no day
        return UNKNOWN_DAY


def day_of(record: UsageRecord) -> str:
    """The UTC day of a record's own time."""
    return UNKNOWN_DAY if record.time is None else _date(int(record.time // 86400))


def _extra(name: str) -> Callable[[UsageRecord], str]:
    return lambda record: record.extra.get(name, "")


DIMENSIONS: dict[str, Callable[[UsageRecord], str]] = {
    "provider": lambda record: record.provider,
    "model": lambda record: record.model or "",
    "template": _extra("template"),
    "template_revision": _extra("template_revision"),
    "namespace": _extra("namespace"),
    "task": _extra("task"),
    "day": day_of,
}
"""What a report can be broken down by."""


class Groups:
    """Groups by the values of some dimensions, boundedly many.

    Args:
        by: names of `DIMENSIONS`.
        limit: how many groups there may be; records of further ones go to `other`.
    """

    def __init__(self, by: Sequence[str], limit: int = 1000) -> None:
        self.by = tuple(by)
        self._parts = [DIMENSIONS[name] for name in by]
        self._limit = limit
        self._groups: dict[tuple[str, ...], Group] = {}
        self.overflowed = 0

    def of(self, record: UsageRecord) -> Group:
        """The group of a record."""
        key = tuple(part(record) for part in self._parts)
        group = self._groups.get(key)
        if group is not None:
            return group
        if len(self._groups) >= self._limit:
            self.overflowed += 1
            key = (OTHER,) * len(self.by)
        return self._groups.setdefault(key, Group())

    def items(self) -> Iterable[tuple[dict[str, str], Group]]:
        """Labels and groups in order of the labels, `other` last."""
        last = (OTHER,) * len(self.by)
        for key, group in sorted(self._groups.items(), key=lambda item: (item[0] == last, item[0])):
            yield dict(zip(self.by, key, strict=True)), group


def run(
    reading: Reading,
    paths: Sequence[str],
    groups: Groups,
    prices: PriceBook,
    eligibility: Eligibility,
    *,
    in_force: tuple[str | None, str | None] = (None, None),
    also: Callable[[UsageRecord, Any], None] | None = None,
) -> dict[str, Any]:
    """Reads every log and gives the report's document.

    Args:
        reading: the reader of the format.
        paths: logs.
        groups: how to break down.
        prices: what records cost.
        eligibility: what of them could have been reused.
        in_force: template and revision of records that name none.
        also: called with each record and its cost, for comparisons.
    """
    whole = Group()
    first: float | None = None
    last: float | None = None
    for record in reading.records(paths):
        cost, eligible = prices.cost(record), eligibility.eligible(record, *in_force)
        whole.add(record, cost, eligible)
        if groups.by:
            groups.of(record).add(record, cost, eligible)
        if also is not None:
            also(record, cost)
        time = record.time
        if time is not None:
            first = time if first is None or time < first else first
            last = time if last is None or time > last else last
    return {
        "files": len(paths),
        "from": _moment(first),
        "to": _moment(last),
        "lines": {"read": reading.lines, "lost": _sorted(reading.lost), "ignored": _sorted(reading.ignored)},
        "unreadable_files": dict(sorted(reading.unreadable.items())),
        "records": {
            "settled": sum(reading.qualities.values()),
            "duplicates": reading.duplicates,
            "quarantined": _sorted(reading.quarantined),
            "by_quality": _sorted(reading.qualities),
            "anomalies": _sorted(reading.anomalies),
        },
        "total": summarise(whole, prices),
        "by": list(groups.by),
        "groups": [{"labels": labels, **summarise(group, prices)} for labels, group in groups.items()],
        "records_in_other": groups.overflowed,
    }


def _sorted(counts: dict[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items()))


def _moment(time: float | None) -> str | None:
    if time is None:
        return None
    try:
        return datetime.fromtimestamp(time, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return None
