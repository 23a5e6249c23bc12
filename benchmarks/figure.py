"""One measured number beside what was promised."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """A measurement.

    Attributes:
        bench: the benchmark's name.
        what: what was measured, in words.
        value: how much.
        unit: of value and target.
        target: the promise; None for figures that only give the background.
        at_least: whether the target is a floor; else it is a ceiling.
    """

    bench: str
    what: str
    value: float
    unit: str
    target: float | None = None
    at_least: bool = False

    @property
    def kept(self) -> bool | None:
        """Whether the promise is kept; None where there is none."""
        if self.target is None:
            return None
        return self.value >= self.target if self.at_least else self.value <= self.target

    def as_json(self) -> dict[str, Any]:
        """The figure with its verdict."""
        return asdict(self) | {"kept": self.kept}


def table(figures: list[Figure]) -> str:
    """The figures as people read them."""
    rows = [("benchmark", "what", "measured", "promised", "")]
    for figure in figures:
        bound = "" if figure.target is None else f"{'>=' if figure.at_least else '<='} {figure.target:,g} {figure.unit}"
        verdict = {None: "", True: "kept", False: "MISSED"}[figure.kept]
        rows.append((figure.bench, figure.what, f"{figure.value:,.4g} {figure.unit}", bound, verdict))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(lines)
