"""What a provider says it served and charged, by day and model."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from prefix_cache_exporter.documents import DocumentError

Key = tuple[str, str]
"""Day and model."""
MEASURES = ("requests", "input", "read", "write", "output")
"""What is compared, beside cost."""


class BillingError(DocumentError):
    """A billing file that cannot be read.

    Attributes:
        file: the file.
        place: the row or the header.
        got: what stood there.
        expected: what should have.
    """

    def __init__(self, file: str, place: str, got: str, expected: str) -> None:
        self.place = place
        super().__init__(file, place, got, expected)


@dataclass(slots=True)
class Billed:
    """What a provider says for one day and model; a measure that it does not give is absent."""

    sums: dict[str, int] = field(default_factory=dict)
    cost: dict[str, Decimal] = field(default_factory=dict)

    def add(self, measure: str, amount: int) -> None:
        """Adds to a measure."""
        self.sums[measure] = self.sums.get(measure, 0) + amount

    def pay(self, currency: str, amount: Decimal) -> None:
        """Adds to the cost."""
        self.cost[currency] = self.cost.get(currency, Decimal(0)) + amount
