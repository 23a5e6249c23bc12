"""All lines of a page at once: its structure, and its values.

From poll to poll the structure seldom changes, and many values do not either. Then comparing is all there is to do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .lines import LineMemory, number_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from .lines import Metadata, Series

_UNKEPT = -1
"""Place of a sample whose value nobody wants, but which must be a number."""


@dataclass(slots=True)
class Structure:
    """What of a page stays the same while only its values move; the same object as long as it does.

    Attributes:
        series: of candidate families, in page order.
        metadata: in page order.
        names: every sample name on the page.
        kept: indices of the lines that may speak of a wanted family.
        skeleton: those lines without their values.
        blank: the number of the first blank line, 0 if there is none.
        texts: each line before its last space.
        digits: each line after it, as last read.
        places: for each line where its value stands, `_UNKEPT`, or None where the line as a whole must stay.
    """

    series: list[Series] = field(default_factory=list)
    metadata: list[Metadata] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    kept: list[int] = field(default_factory=list)
    skeleton: list[str] = field(default_factory=list)
    blank: int = 0
    texts: list[str] = field(default_factory=list)
    digits: list[str] = field(default_factory=list)
    places: list[int | None] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Scan:
    """One page.

    Attributes:
        structure: what stays.
        values: of `structure.series`, in the same order.
        lines: the page's lines.
    """

    structure: Structure
    values: list[float]
    lines: list[str]


class Scanner:
    """Scans pages of one target, faster after the first.

    Args:
        wanted: families whose series are kept.
    """

    def __init__(self, wanted: Collection[str]) -> None:
        self._memory = LineMemory(wanted)
        self._structure = Structure()
        self._values: list[float] = []

    def scan(self, lines: list[str]) -> Scan:
        """Reads all lines of a page.

        Raises:
            LineError: for the first line that prometheus-client's text parser refuses.
        """
        parts = [line.rpartition(" ") for line in lines]
        texts = [part[0] for part in parts]
        digits = [part[2] for part in parts]
        moved = self._moved(digits) if texts == self._structure.texts else None
        if moved is None:
            self._structure, self._values = self._anew(lines, texts, digits)
        else:
            self._structure.digits, self._values = digits, moved
        return Scan(self._structure, self._values, lines)

    def _moved(self, digits: list[str]) -> list[float] | None:
        """The values of a page that has the structure of the last one; None where it has not after all."""
        values = self._values.copy()
        known = self._structure
        for now, before, place in zip(digits, known.digits, known.places, strict=True):
            if now != before:
                value = None if place is None else number_of(now)
                if place is None or value is None:
                    return None
                if place != _UNKEPT:
                    values[place] = value
        return values

    def _anew(self, lines: list[str], texts: list[str], digits: list[str]) -> tuple[Structure, list[float]]:
        self._memory.forget(len(lines))
        found = Structure(texts=texts, digits=digits)
        values: list[float] = []
        for index, line in enumerate(lines):
            if not line or line.isspace():
                found.blank = found.blank or index + 1
                found.places.append(None)
                continue
            said = self._memory.read(index + 1, line, texts[index], digits[index])
            place = _UNKEPT
            if said.metadata:
                found.metadata.append(said.metadata)
            if said.name:
                found.names.add(said.name)
            if said.series:
                place = len(values)
                found.series.append(said.series)
                values.append(said.value)
            if said.kept:
                found.kept.append(index)
                found.skeleton.append(texts[index] if said.steady else line)
            found.places.append(place if said.steady else None)
        return found, values
