"""One log being read: from a position to whole lines and the position behind them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, overload

import msgspec

from . import arrays, cri
from .contents import CHUNK
from .positions import CRI, INSIDE, LINES, TAIL, UNKNOWN, VALUES, moved

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .contents import Content
    from .positions import Position

TOO_LONG = cri.TOO_LONG
_ENDS = re.compile(rb"[\n\0]")
_BREAKS = re.compile(rb"[\n\0]+")
_BOM = b"\xef\xbb\xbf"
_BLANK = 0x20
_FRONT = 1 << 16
"""Bytes of a piece in which a telling line is looked for."""


Cut = tuple[Sequence[bytes], int, str, dict[str, int]]
"""Lines, the offset behind them, how the log is cut, and losses by reason."""


class ReplacedError(Exception):
    """The file no longer holds what was read from it: truncated, written anew, or another file."""


class Block(Sequence[bytes]):
    """Whole lines as one piece of bytes, cut into lines only where somebody asks for one.

    Attributes:
        data: the bytes; each line ends in a newline.
    """

    __slots__ = ("_lines", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._lines: list[bytes] | None = None

    @property
    def lines(self) -> list[bytes]:
        """The lines without their ends; none is blank."""
        if self._lines is None:
            self._lines = not_blank(self.data.split(b"\n"))
        return self._lines

    @overload
    def __getitem__(self, place: int) -> bytes: ...
    @overload
    def __getitem__(self, place: slice) -> list[bytes]: ...
    def __getitem__(self, place: int | slice) -> bytes | list[bytes]:
        return self.lines[place]

    def __len__(self) -> int:
        return len(self.lines)

    def __bool__(self) -> bool:
        return bool(self.data)

    def __eq__(self, other: object) -> bool:
        return self.lines == list(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # a list in all but name


@dataclass(frozen=True, slots=True)
class Piece:
    """What one read gave.

    Attributes:
        lines: whole lines without their ends, in order; none is blank.
        lost: lines that will never come, by reason.
        size: bytes consumed.
    """

    lines: Sequence[bytes]
    lost: Mapping[str, int] = field(default_factory=dict)
    size: int = 0


class Log:
    """Reads one log forward. Holds nothing of it between reads but open CRI lines.

    Args:
        content: its bytes.
        position: where reading stands.
        limit: longest line in bytes; a longer one is stepped over in constant memory and counted.
    """

    def __init__(self, content: Content, position: Position, limit: int) -> None:
        self.content, self.position, self._limit = content, position, limit
        self._joiner = cri.Joiner(limit)
        self._stepping: tuple[int, str, arrays.Skipper] | None = None
        self._stamp: tuple[int, int] | None = None
        if position.mode == CRI and position.rewind < position.offset:
            self._rejoin()

    def advance(self) -> Piece | None:
        """Reads the next whole lines, up to a chunk. None while there are none.

        Raises:
            ReplacedError: where the file holds something else by now. Nothing has been consumed then.
            UnreadableError: where an archive is damaged.
        """
        stamp = self.content.stamp()
        if stamp == self._stamp:
            return None
        if self.content.rewritable and stamp[0] < self.position.offset:
            raise ReplacedError
        offset = self.position.offset
        piece = self._next()
        # Looked at after reading: what was read before the file was replaced would otherwise pass for its new content.
        if self.content.rewritable and not self.position.fits(self.content):
            self._stepping = None
            raise ReplacedError
        if piece is None:
            self._stamp = stamp
            return None
        lines, end, mode, lost = piece
        data = lines.data if isinstance(lines, Block) else b""
        self._move(end, mode, data if len(data) == end - offset else b"")  # a mark or a run of NULs may be left out
        return Piece(lines, lost, end - offset)

    def last(self) -> Piece | None:
        """Takes an unterminated last line if it is a whole JSON object, which nothing written behind it can change."""
        data = self.content.read(self.position.offset, self._limit + 1)
        mode = self.position.mode if self.position.mode != UNKNOWN else _mode_of(data)
        text = data
        if mode == CRI and (match := cri.LINE.fullmatch(data)):
            text = match[3] if match[2] == b"F" else b""
        if mode not in (LINES, CRI) or len(data) > self._limit or not _is_object(text):
            return None
        line, _ = self._joiner.push(data, self.position.offset) if mode == CRI else (data, None)
        if line is None or (self.content.rewritable and not self.position.fits(self.content)):
            return None
        self._move(self.position.offset + len(data), mode)
        return Piece([line], {}, len(data))

    def finish(self) -> Piece:
        """Takes what is left of a log to which nothing will be added: its last line, whole or not."""
        data = self.content.read(self.position.offset, self._limit + 1)
        mode = self.position.mode
        rest = data.strip(b"\0\r\n") if mode not in (VALUES, INSIDE) else arrays.leftover(data)
        line: bytes | None = rest
        reason = TOO_LONG if len(data) > self._limit else None
        if mode == CRI and rest and not reason:
            line, reason = self._joiner.push(rest, self.position.offset)
        lost: dict[str, int] = {reason: 1} if reason else {}
        if orphans := self._joiner.orphans():
            lost[cri.ORPHAN] = orphans
        self._move(self.position.offset + len(data), mode)
        return Piece([line] if line and not reason else [], lost, len(data))

    @property
    def waiting(self) -> bool:
        """Whether bytes without an end are there."""
        return bool(self.content.read(self.position.offset, 1)) or self._joiner.rewind(-1) != -1

    def _move(self, offset: int, mode: str, consumed: bytes = b"") -> None:
        self._stepping = None
        rewind = self._joiner.rewind(offset)
        position = moved(self.position, self.content, offset, mode, rewind)
        # A position is made by reading once more: a file that was truncated meanwhile would give it a front that no
        # copy has, and what was consumed would be read again from the copy.
        if self.content.rewritable and not self._holds(position, consumed):
            raise ReplacedError
        self.position = position

    def _holds(self, position: Position, consumed: bytes) -> bool:
        length = min(TAIL, position.offset)
        tail = self.content.read(position.offset - length, length)
        known = consumed[-length:] if length else b""
        return position.fits(self.content) and len(tail) == length and tail.endswith(known)

    def _next(self) -> Cut | None:
        """Whole lines at the offset, from as few bytes as hold one."""
        if self._stepping is not None:
            return self._step()
        mode, offset, size = self.position.mode, self.position.offset, CHUNK
        while data := self.content.read(offset, size):
            if mode == UNKNOWN and offset == 0 and arrays.is_values(data):
                mode = VALUES
            cut = self._values(data, mode) if mode in (VALUES, INSIDE) else self._lines(data, mode)
            if cut is not None or len(data) < size or (data[-1] == 0 and mode not in (VALUES, INSIDE)):
                return cut
            if size > self._limit:
                self._stepping = (offset, mode, arrays.Skipper())
                return self._step()
            size = min(4 * size, max(self._limit, size) + 1)
        return None

    def _values(self, data: bytes, mode: str) -> Cut | None:
        found = arrays.find_values(data, inside=mode == INSIDE)
        if not found.consumed:
            return None
        lines, lost = self._fitting(found.values, len(data))
        return lines, self.position.offset + found.consumed, INSIDE if found.inside else VALUES, lost

    def _lines(self, data: bytes, mode: str) -> Cut | None:
        end = _last_end(data)
        if end:
            return self._cut(data[:end], mode)
        return self._hole(data.rstrip(b"\0"), mode) if data[-1] == 0 else None

    def _cut(self, data: bytes, mode: str) -> Cut:
        offset = self.position.offset
        end = offset + len(data)
        if offset == 0:
            data = data.removeprefix(_BOM)
        if mode == UNKNOWN:
            mode = _mode_of(data)
        if mode == CRI:
            lines, lost = self._join(data, end - len(data))
            return lines, end, mode, lost
        if b"\0" not in data and len(data) <= self._limit:
            return Block(data), end, mode, {}
        lines, lost = self._fitting(_BREAKS.split(data), len(data))
        return lines, end, mode, lost

    def _join(self, data: bytes, offset: int) -> tuple[list[bytes], dict[str, int]]:
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

    def _rejoin(self) -> None:
        """Brings the joiner to where it stood; the lines that this completes were taken before."""
        start, stop = self.position.rewind, self.position.offset
        while start < stop:
            data = self.content.read(start, min(CHUNK, stop - start))
            whole = data.rfind(b"\n") + 1
            if not whole:
                data = self.content.read(start, min(self._limit + CHUNK, stop - start))
                whole = data.rfind(b"\n") + 1 or len(data)
            if not whole:
                return
            self._join(data[:whole], start)
            start += whole

    def _fitting(self, lines: list[bytes], size: int) -> tuple[list[bytes], dict[str, int]]:
        """Drops blank lines, and those over the limit where there can be any."""
        kept = not_blank(lines)
        if size <= self._limit:
            return kept, {}
        short = [line for line in kept if len(line) <= self._limit]
        return short, {TOO_LONG: len(kept) - len(short)} if len(short) < len(kept) else {}

    def _hole(self, text: bytes, mode: str) -> Cut | None:
        """A run of NULs ends a line once something follows it; until then it may still be written over.

        Such runs are left by copytruncate under a writer that keeps its offset, and by power cuts
        (logrotate/logrotate#363, moby/moby#53631).
        """
        follows = self.content.first_data(self.position.offset + len(text))
        if follows is None:
            return None
        lines, _, mode, lost = self._cut(text, mode) if text else ([], 0, mode, {})
        return lines, follows, mode, lost

    def _step(self) -> Cut | None:
        """Steps over a line or value longer than the limit, keeping none of it."""
        assert self._stepping is not None  # noqa: S101  # the caller has seen to it
        place, mode, skipper = self._stepping
        while data := self.content.read(place, CHUNK):
            if mode in (VALUES, INSIDE):
                end = skipper.feed(data)
            else:
                found = _ENDS.search(data)
                end = None if found is None else found.end()
            if end is not None:
                return [], place + end, mode, {TOO_LONG: 1}
            place += len(data)
            self._stepping = (place, mode, skipper)
        return None


def not_blank(lines: list[bytes]) -> list[bytes]:
    """Lines that hold something."""
    return [line for line in lines if line and (line[0] > _BLANK or not line.isspace())]


def _last_end(data: bytes) -> int:
    """Where the last whole line ends: behind a newline, or behind NULs that something follows."""
    end = data.rfind(b"\n") + 1
    if b"\0" in data:
        end = max(end, data.rstrip(b"\0").rfind(b"\0") + 1)
    return end


def _mode_of(data: bytes) -> str:
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
