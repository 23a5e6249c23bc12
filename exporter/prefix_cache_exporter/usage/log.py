"""One log being read: from a position to whole lines and the position behind them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from . import arrays
from .contents import CHUNK
from .cutting import SLACK, TOO_LONG, Cut, Cutter, last_end
from .pieces import Block, Piece
from .positions import CRI, INSIDE, TAIL, UNKNOWN, VALUES, moved

if TYPE_CHECKING:
    from .contents import Content
    from .positions import Position

_ENDS = re.compile(rb"[\n\0]")


class ReplacedError(Exception):
    """The file no longer holds what was read from it: truncated, written anew, or another file."""


class Log:
    """Reads one log forward. Holds nothing of it between reads but open CRI lines.

    Args:
        content: its bytes.
        position: where reading stands.
        limit: longest line in bytes; a longer one is stepped over in constant memory and counted.

    Attributes:
        content, position: as above, by now.
        rests_at: the stamp of the content at which nothing whole was left to read; None before.
    """

    def __init__(self, content: Content, position: Position, limit: int) -> None:
        self.content, self.position = content, position
        self._most = limit + SLACK
        self._cutter = Cutter(limit)
        self._stepping: tuple[int, str, arrays.Skipper] | None = None
        self.rests_at: tuple[int, int] | None = None
        if position.mode == CRI and position.rewind < position.offset:
            self._rejoin()

    def limit(self, limit: int) -> None:
        """Sets the longest line from here on."""
        self._most = limit + SLACK
        self._cutter.limit(limit)

    def advance(self) -> Piece | None:
        """Reads the next whole lines, up to a chunk. None while there are none.

        Raises:
            ReplacedError: where the file holds something else by now. Nothing has been consumed then.
            UnreadableError: where an archive is damaged.
        """
        stamp = self.content.stamp()
        if stamp == self.rests_at:
            return None
        if self.content.rewritable and stamp[0] < self.position.offset:
            raise ReplacedError
        offset = self.position.offset
        cut = self._next()
        # Looked at after reading: what was read before the file was replaced would otherwise pass for its new content.
        if self.content.rewritable and not self.position.fits(self.content):
            self._stepping = None
            raise ReplacedError
        if cut is None:
            self.rests_at = stamp
            return None
        data = cut.lines.data if isinstance(cut.lines, Block) else b""
        # A mark or a run of NULs may be left out.
        return self._take(cut, stamp, data if len(data) == cut.end - offset else b"")

    def last(self) -> Piece | None:
        """Takes an unterminated last line if it is a whole JSON object, which nothing written behind it can change."""
        offset, stamp = self.position.offset, self.content.stamp()
        cut = self._cutter.last(self.content.read(offset, self._most), offset, self.position.mode)
        if cut is None or (self.content.rewritable and not self.position.fits(self.content)):
            return None
        return self._take(cut, stamp)

    def finish(self) -> Piece:
        """Takes what is left of a log to which nothing will be added: its last line, whole or not."""
        offset, stamp = self.position.offset, self.content.stamp()
        return self._take(self._cutter.rest(self.content.read(offset, self._most), offset, self.position.mode), stamp)

    @property
    def waiting(self) -> bool:
        """Whether bytes without an end are there."""
        return bool(self.content.read(self.position.offset, 1)) or self._cutter.rewind(-1) != -1

    def _take(self, cut: Cut, stamp: tuple[int, int], consumed: bytes = b"") -> Piece:
        self._stepping = None
        start = self.position.offset
        position = moved(self.position, self.content, cut.end, cut.mode, self._cutter.rewind(cut.end), stamp=stamp)
        # A position is made by reading once more: a file that was truncated meanwhile would give it a front that no
        # copy has, and what was consumed would be read again from the copy.
        if self.content.rewritable and not self._holds(position, consumed):
            raise ReplacedError
        self.position = position
        return Piece(cut.lines, cut.lost, cut.end - start)

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
            values = mode in (VALUES, INSIDE)
            cut = self._cutter.values(data, offset, mode) if values else self._lines(data, mode)
            if cut is not None or len(data) < size or (data[-1] == 0 and not values):
                return cut
            if size >= self._most:
                self._stepping = (offset, mode, arrays.Skipper())
                return self._step()
            size = min(4 * size, max(self._most, size))
        return None

    def _lines(self, data: bytes, mode: str) -> Cut | None:
        end = last_end(data)
        if end:
            return self._cutter.lines(data[:end], self.position.offset, mode)
        return self._hole(data.rstrip(b"\0"), mode) if data[-1] == 0 else None

    def _hole(self, text: bytes, mode: str) -> Cut | None:
        """A run of NULs ends a line once something follows it; until then it may still be written over.

        Such runs are left by copytruncate under a writer that keeps its offset, and by power cuts
        (logrotate/logrotate#363, moby/moby#53631).
        """
        offset = self.position.offset
        follows = self.content.first_data(offset + len(text))
        if follows is None:
            return None
        cut = self._cutter.lines(text, offset, mode) if text else Cut([], offset, mode, {})
        return Cut(cut.lines, follows, cut.mode, cut.lost)

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
                return Cut([], place + end, mode, {TOO_LONG: 1})
            place += len(data)
            self._stepping = (place, mode, skipper)
        return None

    def _rejoin(self) -> None:
        """Brings the joiner to where it stood; the lines that this completes were taken before."""
        start, stop = self.position.rewind, self.position.offset
        while start < stop:
            data = self.content.read(start, min(CHUNK, stop - start))
            whole = data.rfind(b"\n") + 1
            if not whole:
                data = self.content.read(start, min(self._most + CHUNK, stop - start))
                whole = data.rfind(b"\n") + 1 or len(data)
            if not whole:
                return
            self._cutter.join(data[:whole], start)
            start += whole
