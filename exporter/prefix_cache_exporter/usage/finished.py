"""Logs that are read once, from front to end, as `usage normalise` and `check log` do."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from typing import TYPE_CHECKING, BinaryIO

from .contents import CHUNK, Gzip, Plain, UnreadableError, open_content
from .log import Log
from .positions import LINES, UNKNOWN, Position

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .contents import Content
    from .pieces import Piece

LINE_LIMIT = 4 << 20
"""Longest line in bytes, unless the caller says otherwise."""
STANDARD_INPUT = "-"


def pieces(path: str, limit: int = LINE_LIMIT) -> Iterator[Piece]:
    """The lines of a log in pieces of bounded size: JSON lines, CRI lines, JSON arrays, each plain or gzip.

    Args:
        path: a file, or `-` for standard input.
        limit: longest line in bytes; longer ones are counted as lost.

    Raises:
        OSError: where it cannot be opened.
        UnreadableError: where it is compressed in another way, or damaged.
    """
    content = open_content(_open(path))
    try:
        log = Log(content, Position(0, 0), limit)
        while (piece := log.advance()) is not None:
            yield piece
        yield log.finish()
        _look_for_the_end(content)
    finally:
        content.close()


def numbered(path: str, limit: int = LINE_LIMIT) -> Iterator[tuple[str, bytes | str]]:
    """The lines of a log with the place of each, and losses: `("line 7", b"{…}")`, `("behind line 7", "too_long")`.

    Where values are not lines (arrays, what is joined of several), and in archives, places count them: `record 7`.

    Raises:
        OSError: where it cannot be opened.
        UnreadableError: where it is compressed in another way, or damaged.
    """
    content = open_content(_open(path))
    number = 0
    place = "the start"
    try:
        log = Log(content, Position(0, 0), limit)
        last = False
        while not last:
            start = log.position.offset
            piece = log.advance()
            if piece is None:
                piece, last = log.finish(), True
            if log.position.mode in (LINES, UNKNOWN) and isinstance(content, Plain):
                data = content.read(start, piece.size) if piece.size <= limit + CHUNK else b""
                for at, line in zip(_lines_of(data, piece.lines), piece.lines, strict=True):
                    place = f"line {number + at}"
                    yield place, line
                number += data.count(b"\n") if data else sum(piece.lost.values())
            else:
                for line in piece.lines:
                    number += 1
                    place = f"record {number}"
                    yield place, line
            yield from ((f"behind {place}", reason) for reason, count in piece.lost.items() for _ in range(count))
        _look_for_the_end(content)
    finally:
        content.close()


def _lines_of(data: bytes, lines: Sequence[bytes]) -> Iterator[int]:
    """Which line each of some lines is, that were cut from data in order."""
    place, number = 0, 1
    for line in lines:
        found = data.index(line, place)
        number += data.count(b"\n", place, found)
        place = found + len(line)
        yield number


def _look_for_the_end(content: Content) -> None:
    if isinstance(content, Gzip) and content.truncated:
        raise UnreadableError("truncated")


def _open(path: str) -> int:
    if path == STANDARD_INPUT:
        return _spooled(sys.stdin.buffer)
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(file).st_mode):
        return file
    with os.fdopen(file, "rb") as pipe:  # of a shell, like <(…)
        return _spooled(pipe)


def _spooled(pipe: BinaryIO) -> int:
    """A file of what comes out of a pipe: it is read again and again where a log is told by its front."""
    with tempfile.TemporaryFile() as spool:
        shutil.copyfileobj(pipe, spool)
        spool.flush()
        return os.dup(spool.fileno())
