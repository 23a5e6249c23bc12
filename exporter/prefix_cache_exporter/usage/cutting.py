"""Cutting the bytes of a log into lines or JSON values. No input or output here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from . import arrays, cri
from .pieces import Block, not_blank
from .positions import CRI, INSIDE, LINES, UNKNOWN, VALUES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TOO_LONG = cri.TOO_LONG
_BREAKS = re.compile(rb"[\n\0]+")
_BOM = b"\xef\xbb\xbf"
SLACK = 256
"""Bytes of a longest line that are not its own: the end of a line, and what stands in front of a CRI line's text."""
_FRONT = 1 << 16
"""Bytes of a piece in which a telling line is looked for."""


class Cut(msgspec.Struct, frozen=True):
    """What was cut from a log at some offset.

    Attributes:
        lines: whole lines without their ends; none is blank.
        end: the offset behind them.
        mode: how the log is cut, as in a position.
        lost: lines that will never come, by reason.
    """

    lines: Sequence[bytes]
    end: int
    mode: str
    lost: Mapping[str, int]


class Cutter:
    """Cuts one log, from front to end. Holds nothing of it but open CRI lines.

    Args:
        limit: longest line in bytes.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._joiner = cri.Joiner(limit)

    def limit(self, limit: int) -> None:
        """Sets the longest line from here on."""
        self._limit = limit
        self._joiner.limit = limit

    def values(self, data: bytes, offset: int, mode: str) -> Cut | None:
        """Whole JSON values at the front of bytes that begin between two; None where there are none."""
        found = arrays.find_values(data, inside=mode == INSIDE)
        if not found.consumed:
            return None
        lines, lost = self._fitting(found.values, len(data))
        return Cut(lines, offset + found.consumed, INSIDE if found.inside else VALUES, lost)

    def lines(self, data: bytes, offset: int, mode: str) -> Cut:
        """Cuts bytes that end with a line."""
        end = offset + len(data)
        if offset == 0:
            data = data.removeprefix(_BOM)
        if mode == UNKNOWN:
            mode = mode_of(data)
        if mode == CRI:
            lines, lost = self.join(data, end - len(data))
            return Cut(lines, end, mode, lost)
        if b"\0" not in data and len(data) <= self._limit:
            return Cut(Block(data), end, mode, {})
        lines, lost = self._fitting(_BREAKS.split(data), len(data))
        return Cut(lines, end, mode, lost)

    def join(self, data: bytes, offset: int) -> tuple[list[bytes], dict[str, int]]:
        """Joins the parts of CRI lines: whole lines, and losses by reason."""
        lines: list[bytes] = []
        lost: dict[str, int] = {}
        for raw in data.split(b"\n"):
            for part in raw.split(b"\0") if b"\0" in raw else (raw,):
                if not part:
                    continue
                line, reason = self._joiner.push(part.removesuffix(b"\r"), offset)
                if reason is not None:
                    lost[reason] = lost.get(reason, 0) + 1
                elif line:
                    lines.append(line)
            offset += len(raw) + 1
        return lines, lost

    def last(self, data: bytes, offset: int, mode: str) -> Cut | None:
        """An unterminated last line, if it is a whole JSON object, which nothing written behind it can change.

        What the caller does not use must not be cut again.
        """
        mode = mode if mode != UNKNOWN else mode_of(data)
        text = data
        if mode == CRI and (match := cri.LINE.fullmatch(data)):
            text = match[3] if match[2] == b"F" else b""
        if mode not in (LINES, CRI) or not self._fits(text) or not _is_object(text):
            return None
        line, _ = self._joiner.push(data, offset) if mode == CRI else (data, None)
        return None if line is None else Cut([line], offset + len(data), mode, {})

    def rest(self, data: bytes, offset: int, mode: str) -> Cut:
        """What is left at the end of a log to which nothing will be added: its last line, whole or not."""
        rest = data.strip(b"\0\r\n") if mode not in (VALUES, INSIDE) else arrays.leftover(data)
        line: bytes | None = rest
        reason: str | None = None
        if mode == CRI and rest:
            line, reason = self._joiner.push(rest, offset)
        elif not self._fits(rest):
            reason = TOO_LONG
        lost: dict[str, int] = {reason: 1} if reason else {}
        if orphans := self._joiner.orphans():
            lost[cri.ORPHAN] = orphans
        return Cut([line] if line and not reason else [], offset + len(data), mode, lost)

    def rewind(self, offset: int) -> int:
        """Where the oldest open CRI line begins; `offset` where none is open."""
        return self._joiner.rewind(offset)

    def _fits(self, line: bytes) -> bool:
        return len(line) <= self._limit or len(line.removesuffix(b"\r")) <= self._limit

    def _fitting(self, lines: list[bytes], size: int) -> tuple[list[bytes], dict[str, int]]:
        """Drops blank lines, and those over the limit where there can be any."""
        kept = not_blank(lines)
        if size <= self._limit:
            return kept, {}
        short = [line for line in kept if self._fits(line)]
        return short, {TOO_LONG: len(kept) - len(short)} if len(short) < len(kept) else {}


def last_end(data: bytes) -> int:
    """Where the last whole line ends: behind a newline, or behind NULs that something follows."""
    end = data.rfind(b"\n") + 1
    if b"\0" in data:
        end = max(end, data.rstrip(b"\0").rfind(b"\0") + 1)
    return end


def mode_of(data: bytes) -> str:
    """What the first telling line says; anything else leaves it open."""
    for line in _BREAKS.split(data[:_FRONT]):
        if cri.LINE.match(line):
            return CRI
        if line.lstrip().startswith(b"{"):
            return LINES
    return UNKNOWN


def _is_object(text: bytes) -> bool:
    if not text.lstrip().startswith(b"{"):
        return False
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except msgspec.DecodeError:
        return False
    return True
