"""The prices of one period or mode as a book states them, and when they hold."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

FOREVER = float("inf")
_DAY = 86400
_THURSDAY = 3
"""The day of the week that 1970 began with; Monday is 0."""
_SATURDAY = 5
Price = tuple[Decimal, bool]
"""A price per token, or (True) a multiple of the input price."""


class Span(msgspec.Struct, frozen=True):
    """When a price holds, in seconds since 1970 and seconds of the UTC day, of weekdays alone or of every day."""

    start: float
    end: float
    daily: tuple[int, int] | None
    weekdays: bool = False

    @property
    def always(self) -> bool:
        """Whether there is no time at which it does not hold."""
        return self.daily is None and self.start == -FOREVER and self.end == FOREVER

    def holds(self, time: float) -> bool:
        """Whether it holds at a moment, in seconds since 1970."""
        if not self.start <= time < self.end:
            return False
        if self.daily is None:
            return True
        day, second = divmod(int(time), _DAY)
        if self.weekdays and (day + _THURSDAY) % 7 >= _SATURDAY:
            return False
        first, last = self.daily
        return first <= second < last if first < last else second >= first or second < last


class Sheet(msgspec.Struct, frozen=True):
    """The prices of one period or mode: those of short prompts, and what changes above a total input."""

    span: Span
    base: Mapping[str, Price]
    above: tuple[tuple[int, Mapping[str, Price]], ...] = ()
    factor: Decimal | None = None
    when: str = ""

    def at(self, total: int) -> dict[str, Price]:
        """The prices of a request with a total input."""
        prices = dict(self.base)
        for tokens, changed in self.above:
            if total > tokens:
                prices |= changed
        return prices


def in_force(sheets: tuple[Sheet, ...] | list[Sheet], time: float | None) -> Sheet | str:
    """Of several prices that hold, the last; a record without a time is priced only where time does not matter."""
    if time is None:
        if any(not sheet.span.always for sheet in sheets):
            return "time_unknown"
        return sheets[-1] if sheets else "no_price_for_time"
    return next((sheet for sheet in reversed(sheets) if sheet.span.holds(time)), "no_price_for_time")
