"""Opening files that were found, which may be gone, swapped or barred by then."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prefix_cache_exporter.usage.contents import Content, open_content

if TYPE_CHECKING:
    from collections.abc import Callable

    from prefix_cache_exporter.usage.files import File, Match


class Opener:
    """Opens files, and remembers which ones it may not.

    Args:
        open_path: opens a path for reading and returns the descriptor.

    Attributes:
        readable: whether every file could be opened since the last look.
        barred: the files that could not.
    """

    def __init__(self, open_path: Callable[[str], int] | None = None) -> None:
        self._open_path = open_path or _open
        self.readable = False
        self.barred: set[File] = set()

    def begin(self, *, readable: bool) -> None:
        """A new look at the disk, which went well or not."""
        self.readable = readable
        self.barred.clear()

    def open(self, match: Match) -> Content | None:
        """The content of a file; None where it is gone, is another one by now, or may not be read.

        Raises:
            UnreadableError: for a compression that is not read here.
        """
        try:
            fd = self._open_path(match.path)
        except FileNotFoundError:
            return None
        except OSError:
            self.readable = False
            self.barred.add(match.file)
            return None
        info = os.fstat(fd)
        if (info.st_dev, info.st_ino) != match.file:
            os.close(fd)
            return None
        return open_content(fd)


def _open(path: str) -> int:
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
