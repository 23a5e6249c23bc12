"""What a file holds, held against logs that are known: the same, a copy of it, or something else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import arrays, positions
from .contents import CHUNK, UnreadableError
from .positions import INSIDE, VALUES

if TYPE_CHECKING:
    from .contents import Content
    from .log import Log
    from .positions import Position

COPY, UNCLEAR, OTHER, MORE = range(4)
"""A copy gives nothing that its original does not; what is unclear is looked at again; more goes on where the original
ends, whose file nobody can write to any more."""
_MAGIC = 6
_ENDLESS = 1 << 62


class Front:
    """The front of a file, hashed once for each length that is asked for."""

    def __init__(self, content: Content) -> None:
        self.content = content
        self._hashes: dict[int, bytes | None] = {}

    def begins(self, position: Position) -> bool:
        """Whether the file begins as a log did; not where it cannot be read that far."""
        length = position.head_length
        if length not in self._hashes:
            try:
                data = self.content.read(0, length)
            except UnreadableError:
                data = b""
            self._hashes[length] = positions.digest(data) if len(data) == length else None
        return not length or self._hashes[length] == position.head


def compare(log: Log, front: Front) -> int:
    """Holds a file against a log that is being followed: a copy holds the same as far as it goes, and no more.

    Where the original was deleted, a file that holds more took its place: rsync and whoever writes a file anew move it
    over the old one.
    """
    original, content, position = log.content, front.content, log.position
    at_rest = log.rests_at is not None and log.rests_at == original.stamp()
    if at_rest and not front.begins(position) and content.extent(position.head_length) == position.head_length:
        return OTHER  # what most files are to one another
    if original.rewritable and not log.position.fits(original):
        return UNCLEAR  # replaced just now
    whole = original.extent(_ENDLESS)
    extent = content.extent(whole + 1)
    if not original.linked and position.tells() and front.begins(position) and fits(position, content):
        if whole - position.offset > CHUNK:
            return UNCLEAR  # its rest is being read
        rest = original.read(position.offset, CHUNK)
        if position.mode in (VALUES, INSIDE):
            rest = arrays.leftover(rest)
        if extent > whole and content.read(position.offset, len(rest)) == rest:
            return MORE
    if extent > whole:
        return OTHER
    tail = max(0, extent - positions.TAIL), min(extent, positions.TAIL)
    pieces = (0, min(extent, positions.HEAD)), tail
    return COPY if all(content.read(*piece) == original.read(*piece) for piece in pieces) else OTHER


def shorter(position: Position, front: Front) -> int:
    """Judges a file that does not hold what was read from a log that is closed."""
    content = front.content
    if not front.begins(position) or content.complete or content.extent(position.offset) >= position.offset:
        return OTHER
    # An archive being packed, or an array being written anew, holds less than was read so far.
    return COPY if not content.rewritable or position.mode in (VALUES, INSIDE) else OTHER


def is_early(content: Content) -> bool:
    """Whether too little is there to tell what a file holds: not even how it is packed, or no front of an archive."""
    if content.rewritable:
        return content.extent(_MAGIC) < _MAGIC
    try:
        return content.extent(positions.HEAD) < positions.HEAD and not content.complete
    except UnreadableError:
        return False


def fits(position: Position, content: Content) -> bool:
    """Whether a file goes on where a position stands; not where it cannot be read that far."""
    try:
        return position.fits(content)
    except UnreadableError:
        return False
