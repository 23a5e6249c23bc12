"""Logs that are read once, from front to end, as `usage normalise` and `check log` do."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from typing import TYPE_CHECKING

from .contents import open_content
from .log import Log, Piece
from .positions import Position

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    finally:
        content.close()


def _open(path: str) -> int:
    if path != STANDARD_INPUT:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    with tempfile.TemporaryFile() as spool:  # read again and again where a log is told by its front
        shutil.copyfileobj(sys.stdin.buffer, spool)
        spool.flush()
        return os.dup(spool.fileno())
