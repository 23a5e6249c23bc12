"""Packs panels into Grafana's grid of 24 columns, row by row, and numbers them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from grafanalib.core import GridPos

from .shapes import Row

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .shapes import Visual

COLUMNS = 24


class Cell(NamedTuple):
    """A panel with its size in columns and grid rows."""

    panel: Visual
    width: int
    height: int


class Section(NamedTuple):
    """A heading and what stands under it."""

    title: str
    cells: tuple[Cell, ...]


def packed(sections: Iterable[Section]) -> list[Visual | Row]:
    """Panels with places and numbers, left to right and top to bottom, each section under its heading."""
    found: list[Visual | Row] = []
    number = y = 0
    for section in sections:
        number += 1
        row = Row(title=section.title, id=number, gridPos=GridPos(1, COLUMNS, 0, y))
        y += 1
        x = tallest = 0
        for panel, width, height in section.cells:
            if x + width > COLUMNS:
                x, y, tallest = 0, y + tallest, 0
            number += 1
            panel.id, panel.gridPos = number, GridPos(height, width, x, y)
            x, tallest = x + width, max(tallest, height)
        y += tallest
        found += [row, *(cell.panel for cell in section.cells)]
    return found
