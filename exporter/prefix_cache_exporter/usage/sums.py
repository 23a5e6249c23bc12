"""Sums over plain records whose rows nobody asks for."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .intake import Row
    from .record import UsageRecord


class Bounds(NamedTuple):
    """Which records can be summed.

    Attributes:
        most: their largest total input.
        low: their earliest time, where they have one.
        high: their latest.
    """

    most: float = inf
    low: float = -inf
    high: float = inf

    def within(self, low: float, high: float) -> Bounds:
        """The same with narrower times."""
        return Bounds(self.most, max(low, self.low), min(high, self.high))


EVERYTHING, NOTHING_AT_ALL = Bounds(), Bounds(-1, inf, -inf)


class Sums:
    """What records that differ in nothing but their rows add up to; see `Row` for the numbers.

    Records outside the bounds are kept as rows. The loop of `narrow.py` adds to the attributes.

    Args:
        sample: what the records have in common.
        label: what whoever counts them made of the sample; None where it needs rows of them all.
        touched: told of itself at the first row.
        reported: whether the records say what was read; all do or none.
        bounds: which records to sum.

    Attributes:
        requests: records that were summed.
        total: their input tokens; `read` and `output` likewise.
        hits: those that read anything from a cache.
        writes: written tokens by time to live.
        unsplit: records whose written tokens have no known time to live; `unknown` are their tokens.
        first: the earliest time among them, `inf` where none has one; `last` the latest.
        add: takes a row instead.
    """

    __slots__ = (
        "_touched",
        "add",
        "first",
        "high",
        "hits",
        "label",
        "last",
        "low",
        "most",
        "output",
        "read",
        "reported",
        "requests",
        "rows",
        "sample",
        "total",
        "unknown",
        "unsplit",
        "writes",
    )

    def __init__(
        self,
        sample: UsageRecord,
        label: Any,
        touched: Callable[[Sums], None],
        *,
        reported: bool,
        bounds: Bounds,
    ) -> None:
        self.sample, self.label, self.reported = sample, label, reported
        self.most, self.low, self.high = bounds if label is not None else NOTHING_AT_ALL
        self.requests = self.total = self.read = self.output = self.hits = self.unsplit = self.unknown = 0
        self.writes: dict[str, int] = {}
        self.first: float = inf
        self.last: float = -inf
        self.rows: list[Row] = []
        self._touched = touched
        self.add: Callable[[Row], None] = self._first_row

    def begin(self, time: float | None) -> None:
        """Takes the time of the first record; where it lies outside the bounds, all records are kept as rows."""
        if time is not None and self.low <= time <= self.high:
            self.first = self.last = time
        elif time is not None:
            self.most = NOTHING_AT_ALL.most

    def wrote(self, split: Mapping[str, int]) -> None:
        """Takes in the tokens that one record wrote."""
        for ttl, tokens in split.items():
            self.writes[ttl] = self.writes.get(ttl, 0) + tokens

    @property
    def uncached(self) -> int:
        """Input tokens neither read nor written."""
        return self.total - self.read - sum(self.written.values())

    @property
    def written(self) -> Mapping[str, int]:
        """Written tokens by time to live, with those of which none is known."""
        return {**self.writes, "unknown": self.writes.get("unknown", 0) + self.unknown} if self.unsplit else self.writes

    def _first_row(self, row: Row) -> None:
        self.rows.append(row)
        self.add = self.rows.append
        self._touched(self)

    def take_rows(self) -> list[Row]:
        """The rows; from here on there are none."""
        rows, self.rows = self.rows, []
        self.add = self._first_row
        return rows
