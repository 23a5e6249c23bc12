"""Rows of words and numbers as aligned text, as Markdown and as CSV."""

from __future__ import annotations

import csv
import io
import re
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Cell = str | int | float | Decimal | None

ABSENT = "-"
"""What stands where nothing is known."""
_NUMBER = re.compile(r"-?[\d,.]+( %)?")
_MARKUP = re.compile(r"[\\`*\[\]<>|~&]|(?<![^\W_])_|_(?![^\W_])")
"""What Markdown takes for more than itself; an underscore between letters is none of it."""
_FORMULA = ("=", "+", "-", "@")
"""How text begins that spreadsheets run as a formula."""


def shown(cell: Cell) -> str:
    """A cell for people: whole numbers with separators, money to six places at the most."""
    if cell is None:
        return ABSENT
    if isinstance(cell, bool | str):
        return printable(str(cell))
    if isinstance(cell, Decimal):
        text = f"{cell:,.6f}".rstrip("0").rstrip(".")
        return text if Decimal(text.replace(",", "")) or not cell else f"{cell:.2e}"
    return f"{cell:,}"


def printable(text: str) -> str:
    """Text from a log on one line and without what steers a terminal: such characters as Python writes them."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def markdown(text: str) -> str:
    """Text from a log as Markdown shows it: as it stands."""
    return _MARKUP.sub(lambda found: f"\\{found.group()}", printable(text))


def percent(value: float | None) -> str:
    """A ratio in per cent, to a tenth."""
    return ABSENT if value is None else f"{value:.1%}".replace("%", " %")


def as_text(header: Sequence[str], rows: Iterable[Sequence[Cell]], indent: str = "") -> list[str]:
    """Aligned columns; numbers to the right."""
    cells = [[*header], *([shown(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = []
    for row in cells:
        parts = [
            text.rjust(width) if _right(cells, column) else text.ljust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append((indent + "  ".join(parts)).rstrip())
    return lines


def as_markdown(header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> list[str]:
    """A Markdown table; numbers to the right."""
    cells = [[*header], *([markdown(shown(cell)) for cell in row] for row in rows)]
    rule = ["---:" if _right(cells, column) else "---" for column in range(len(header))]
    return [f"| {' | '.join(row)} |" for row in (cells[0], rule, *cells[1:])]


def as_csv(header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """CSV with plain numbers; nothing where nothing is known.

    Text that a spreadsheet would run gets an apostrophe in front: model names come from whoever writes the log.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    for row in rows:
        writer.writerow(map(_plain, row))
    return out.getvalue()


def _plain(cell: Cell) -> str | float:
    if cell is None:
        return ""
    if isinstance(cell, Decimal):
        return f"{cell:f}"
    if not isinstance(cell, str):
        return cell
    text = printable(cell)
    return f"'{text}" if text.lstrip().startswith(_FORMULA) else text


def _right(cells: Sequence[Sequence[str]], column: int) -> bool:
    values = [row[column] for row in cells[1:] if row[column] != ABSENT]
    return bool(values) and all(_NUMBER.fullmatch(value) for value in values)
