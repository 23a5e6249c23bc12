"""The shape of a catalogue entry: one metric family as it stands on the exporter's own page."""

from __future__ import annotations

from typing import Literal

import msgspec

Kind = Literal["counter", "gauge", "histogram", "info"]
Plane = Literal["engine", "usage", "release", "exporter"]


class Family(msgspec.Struct, frozen=True):
    """One metric family of the exporter's page.

    Attributes:
        id: the canonical measure's name, as maps, `maps apply` and documentation write it.
        name: the family name on the wire, without `_total`.
        kind: counter, gauge, histogram or info (a gauge that is always 1).
        unit: base unit in words (`tokens`, `requests`, `seconds`, `ratio`, `currency`, `blocks`, `1`).
        help: one sentence; says what is counted and, where it matters, what is not.
        labels: label names in wire order.
        scale: stored integers per unit. Money is kept in whole trillionths so that sums stay exact.
    """

    id: str
    name: str
    kind: Kind
    unit: str
    help: str
    labels: tuple[str, ...]
    scale: int = 1

    @property
    def plane(self) -> Plane:
        """The evidence a family belongs to; families of two planes are never added."""
        for plane in ("engine", "usage", "release"):
            if self.name.startswith(f"prefix_cache_{plane}_"):
                return plane
        return "exporter"

    @property
    def series_name(self) -> str:
        """The name that PromQL selects: counters end in `_total`."""
        return f"{self.name}_total" if self.kind == "counter" else self.name


class Ratio(msgspec.Struct, frozen=True):
    """A quotient with both sides named; computed by summing first and dividing last.

    Attributes:
        id: name used by rules (`source:<id>:ratio_rate5m`), `report`, dashboards and the status page.
        title: what people read.
        plane: `engine` or `usage`.
        numerator, denominator: measure ids of that plane; several are added before dividing.
        counted: what is in the denominator, in one clause.
        left_out: what is not in the denominator, in one clause.
        part: the numerator is by definition a part of the denominator, so that a numerator that was never counted
            beside a denominator that was is 0; elsewhere it is unknown.
        together: both sides are counted in one go, so that over an interval the numerator gains no more than the
            denominator; more cannot be believed.
    """

    id: str
    title: str
    plane: Literal["engine", "usage"]
    numerator: tuple[str, ...]
    denominator: tuple[str, ...]
    counted: str
    left_out: str
    unknown: tuple[str, ...] = ()
    part: bool = False
    together: bool = False
