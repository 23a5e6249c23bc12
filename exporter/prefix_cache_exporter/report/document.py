"""Runs a report: records to groups, groups to one document."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from prefix_cache_exporter.usage.lane.sums import EVERYTHING, Sums
from prefix_cache_exporter.usage.prices.money import record_of, summable
from prefix_cache_exporter.usage.record import UsageRecord

from .summary import summarise
from .tally import Group, Tally

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from prefix_cache_exporter.usage.eligible import Eligibility
    from prefix_cache_exporter.usage.intake import Row
    from prefix_cache_exporter.usage.lane.sums import Bounds
    from prefix_cache_exporter.usage.prices.book import PriceBook

    from .reading import Reading
    from .reconcile import Logged
    from .tally import Release

OTHER = "other"
"""Where records go whose group would be one too many; their sums stay exact."""
UNKNOWN_DAY = "unknown"
_ROWS, _GROUPS = 1000, 100
"""Rows of a group that are worth adding up at once, and how many groups are held until they have so many."""


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

    def of(self, record: UsageRecord, records: int = 1) -> Group:
        """The group of a record, or of several that belong together."""
        key = tuple(part(record) for part in self._parts)
        group = self._groups.get(key)
        if group is not None:
            return group
        if len(self._groups) >= self._limit:
            self.overflowed += records
            key = (OTHER,) * len(self.by)
        return self._groups.setdefault(key, Group())

    def whole(self) -> Group:
        """All groups together."""
        whole = Group()
        for group in self._groups.values():
            whole.merge(group)
        return whole

    def items(self) -> Iterable[tuple[dict[str, str], Group]]:
        """Labels and groups in order of the labels, `other` last."""
        last = (OTHER,) * len(self.by)
        for key, group in sorted(self._groups.items(), key=lambda item: (item[0] == last, item[0])):
            yield dict(zip(self.by, key, strict=True)), group


class Run:
    """Takes the records of a report in.

    Args:
        groups: how to break down.
        prices: what records cost.
        eligibility: what of them could have been reused.
        release: template and revision of records that name none.
        logged: sums by day and model, for comparisons.
    """

    def __init__(
        self,
        groups: Groups,
        prices: PriceBook,
        eligibility: Eligibility,
        *,
        release: Release = (None, None),
        logged: Logged | None = None,
    ) -> None:
        self._groups, self._prices, self._eligibility = groups, prices, eligibility
        self._release, self._logged = release, logged
        self._by_day = "day" in groups.by or logged is not None
        self._held: dict[int, tuple[UsageRecord, list[Row]]] = {}
        self.first: float | None = None
        self.last: float | None = None

    def add(self, record: UsageRecord) -> None:
        """Takes in one record."""
        self.span([record.time] if record.time is not None else [])
        cost, eligible = self._prices.cost(record), self._eligibility.eligible(record, *self._release)
        self._groups.of(record).add(record, cost, eligible)
        if self._logged is not None:
            tally = Tally()
            tally.add(record, cost, eligible)
            self._logged.add((day_of(record), record.model or ""), tally)

    def hold(self, sample: UsageRecord, rows: list[Row]) -> None:
        """Takes in plain records that differ in nothing but their rows; small groups are held until there are more."""
        held = self._held.get(id(sample))
        if held is None:
            held = self._held[id(sample)] = (sample, [])
        held[1].extend(rows)
        if len(held[1]) >= _ROWS:
            self.add_rows(*self._held.pop(id(sample)))
        elif len(self._held) > _GROUPS:
            self.flush()

    def label(self, sample: UsageRecord, row: Row, ttls: Iterable[str]) -> tuple[bool | None, Bounds]:
        """For which of the records like one sums are enough; None where it takes all their rows."""
        bounds = summable(self._prices, sample, row, ttls)
        if bounds is None or self._by_day or self._eligibility.concerns(sample, *self._release):
            return None, EVERYTHING
        return True, bounds

    def add_sums(self, sums: Sums) -> None:
        """Takes in what plain records add up to; their times come by themselves."""
        self._groups.of(sums.sample, sums.requests).add_sums(sums, self._prices)

    def flush(self) -> None:
        """Takes in what is still held."""
        for sample, rows in self._held.values():
            self.add_rows(sample, rows)
        self._held.clear()

    def add_rows(self, sample: UsageRecord, rows: Sequence[Row]) -> None:
        """Takes in plain records that differ in nothing but their rows."""
        self.span([row[6] for row in rows if row[6] is not None])
        for some in _days(rows) if self._by_day else (rows,):
            one = record_of(sample, some[0])
            self._groups.of(one, len(some)).add_rows(sample, some, self._prices, self._eligibility, self._release)
            if self._logged is not None:
                tally = Tally()
                tally.add_rows(sample, some, self._prices, self._eligibility)
                self._logged.add((day_of(one), one.model or ""), tally)

    def span(self, times: Sequence[float]) -> None:
        """Takes in times of records."""
        if times:
            first, last = min(times), max(times)
            self.first = first if self.first is None else min(first, self.first)
            self.last = last if self.last is None else max(last, self.last)


def _days(rows: Sequence[Row]) -> Iterable[Sequence[Row]]:
    """Rows of one UTC day each."""
    days: dict[int | None, list[Row]] = {}
    for row in rows:
        time = row[6]
        days.setdefault(None if time is None else int(time // 86400), []).append(row)
    return days.values()


def run(reading: Reading, paths: Sequence[str], groups: Groups, prices: PriceBook, into: Run) -> dict[str, Any]:
    """Reads every log and gives the report's document."""
    for found in reading.groups(paths):
        if isinstance(found, UsageRecord):
            into.add(found)
        elif isinstance(found, Sums):
            into.add_sums(found)
        else:
            into.hold(*found)
    into.flush()
    into.span(reading.summed_span)
    whole = groups.whole()
    return {
        "files": len(paths),
        "from": _moment(into.first),
        "to": _moment(into.last),
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
        "groups": [{"labels": labels, **summarise(group, prices)} for labels, group in groups.items() if groups.by],
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
