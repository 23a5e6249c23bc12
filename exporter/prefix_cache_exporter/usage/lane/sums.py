"""Sums over plain records whose rows nobody asks for."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from . import compiled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from prefix_cache_exporter.usage.intake import Row
    from prefix_cache_exporter.usage.record import UsageRecord


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


MOST = (1 << 30) - 1
"""Tokens of a record that is summed: up to here comparing is quickest, and 64 bits hold the sums."""
EVERYTHING, NOTHING_AT_ALL = Bounds(), Bounds(-1, inf, -inf)


if TYPE_CHECKING or not compiled.BUILT:

    class Totals:
        """The numbers of sums that the loops add to; see `Sums`."""

        __slots__ = ("high", "hits", "low", "most", "others", "output", "read", "total", "unsplit", "writes")

        hits: int
        others: int
        total: int
        read: int
        output: int
        unsplit: int
        most: float
        low: float
        high: float
        writes: dict[str, int]

else:
    Totals = compiled.adding.Totals


class Sums(Totals):
    """What records that differ in nothing but their rows add up to; see `Row` for the numbers.

    Records outside the bounds are kept as rows. The loop of `narrow.py` adds to the attributes.

    Args:
        sample: what the records have in common.
        label: what whoever counts them made of the sample; None where it needs rows of them all.
        touched: told of itself at the first row.
        reported: whether the records say what was read; all do or none.
        bounds: which records to sum.
        time: of the first record; where it lies outside the bounds, all are kept as rows.

    Attributes:
        hits: records that were summed and read anything from a cache; `others` are the rest.
        total: input tokens of them all; `read` and `output` likewise.
        writes: written tokens by time to live.
        unsplit: records whose written tokens have no known time to live; `unknown` are their tokens.
        time: a time within the bounds, seconds since 1970; None where the records have none.
        add: takes a row instead.
    """

    __slots__ = (
        "_touched",
        "add",
        "label",
        "reported",
        "rows",
        "sample",
        "time",
        "unknown",
    )

    def __init__(
        self,
        sample: UsageRecord,
        label: Any,
        touched: Callable[[Sums], None],
        *,
        reported: bool,
        bounds: Bounds = EVERYTHING,
        time: float | None = None,
    ) -> None:
        self.sample, self.label, self.reported, self.time = sample, label, reported, time
        summing = label is not None and (time is None or bounds.low <= time <= bounds.high)
        self.most, self.low, self.high = bounds if summing else NOTHING_AT_ALL
        self.most = min(self.most, MOST)
        self.total = self.read = self.output = self.hits = self.others = self.unsplit = self.unknown = 0
        self.writes = {}
        self.rows: list[Row] = []
        self._touched = touched
        self.add: Callable[[Row], None] = self._first_row

    @property
    def requests(self) -> int:
        """Records that were summed."""
        return self.hits + self.others

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


class Times:
    """The times of all that is summed up at once.

    Attributes:
        first: the earliest time of the window, in which every time suits all sums; `inf` while there is no such time.
        last: the latest.
        low: the latest of the sums' earliest times: beyond it, each looks for itself.
        high: the earliest of their latest.
        span: the earliest and the latest time of any record that was summed, since the start.
    """

    __slots__ = ("first", "high", "last", "low", "span")

    def __init__(self) -> None:
        self.span = (inf, -inf)
        self.reset()

    def reset(self) -> None:
        """Forgets the sums, not the span."""
        self.first, self.last, self.low, self.high = inf, -inf, -inf, inf

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """`first`, `last`, `low` and `high`."""
        return self.first, self.last, self.low, self.high

    def narrowed(self, first: float, last: float, sums: Sums) -> Times:
        """Takes in the window so far, and sums that begin."""
        self.keep(first, last)
        if sums.most >= 0 and sums.time is not None:
            self.low, self.high = max(self.low, sums.low), min(self.high, sums.high)
            self.beyond(sums.time)
            self.first, self.last = min(max(first, self.low), sums.time), max(min(last, self.high), sums.time)
            if not self.low <= self.first <= self.last <= self.high:  # no time suits them all: each looks for itself
                self.first, self.last, self.low, self.high = inf, -inf, inf, -inf
        return self

    def keep(self, first: float, last: float) -> None:
        """Takes in the window."""
        self.first, self.last = first, last
        self.span = min(first, self.span[0]), max(last, self.span[1])

    def beyond(self, time: float) -> None:
        """Takes in a time outside the window."""
        self.span = min(time, self.span[0]), max(time, self.span[1])
