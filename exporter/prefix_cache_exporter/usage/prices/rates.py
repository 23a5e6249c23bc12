"""What one token costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from prefix_cache_exporter.measures.usage import MONEY_SCALE

if TYPE_CHECKING:
    from collections.abc import Mapping

ATTO = 10**18
"""Units of `Rates` per currency unit."""
PER_TRILLIONTH = ATTO // MONEY_SCALE
"""Units of `Rates` per trillionth."""
ANY_TTL = "*"
"""Stands for every time to live that a book does not name."""


class Rates(msgspec.Struct, frozen=True):
    """What one token costs, in 10^-18 of `currency`. None: the book does not say.

    Attributes:
        input: a token that is neither read from nor written to a cache.
        read: a token read from a cache.
        write: a token written, by time to live; the whole rate, not a surcharge on `input`.
        default_ttl: the time to live of written tokens whose record does not say.
        source, date: where the price stands and when it was read there.
    """

    input: int
    output: int | None
    read: int | None
    write: Mapping[str, int]
    default_ttl: str | None
    currency: str
    source: str
    date: str

    @property
    def exact(self) -> bool:
        """Whether every rate is a whole number of trillionths, so that nothing is ever rounded."""
        return not any(
            (rate or 0) % PER_TRILLIONTH for rate in (self.input, self.output, self.read, *self.write.values())
        )

    def written(self, ttl: str) -> int | None:
        """The rate of a token written with a time to live, `unknown` included."""
        if ttl == "unknown" and self.default_ttl is not None and ttl not in self.write:
            ttl = self.default_ttl
        return self.write.get(ttl, self.write.get(ANY_TTL))
