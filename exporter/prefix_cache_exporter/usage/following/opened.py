"""The logs that are open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from prefix_cache_exporter.usage import files

if TYPE_CHECKING:
    from collections.abc import Iterator, KeysView

    from prefix_cache_exporter.usage.files import File
    from prefix_cache_exporter.usage.log import Log

MOST_OPEN = 256
"""Idle files above this number are closed, and opened again when they change."""


@dataclass(slots=True)
class Followed:
    """A log being read.

    Attributes:
        log: its reader.
        file: the file that it is read from.
        path: where a pattern finds that file; None where none does any more.
        moved_at: when something was last read, in monotonic seconds.
        judged: whether it is clear what the file holds; a short one may turn out to be a copy.
    """

    log: Log
    file: File
    path: str | None
    moved_at: float
    judged: bool = True


class Opened:
    """Open logs by number and by file."""

    def __init__(self) -> None:
        self._logs: dict[int, Followed] = {}
        self._by_file: dict[File, int] = {}

    def __contains__(self, key: object) -> bool:
        return key in self._logs

    def __iter__(self) -> Iterator[tuple[int, Followed]]:
        """Over a copy, so that logs may be closed on the way."""
        return iter(list(self._logs.items()))

    def keys(self) -> KeysView[int]:
        """The numbers of open logs."""
        return self._logs.keys()

    def get(self, key: int) -> Followed | None:
        """A log, if it is open."""
        return self._logs.get(key)

    def reads(self, file: File) -> bool:
        """Whether a log is being read from a file."""
        return file in self._by_file

    def add(self, key: int, one: Followed) -> None:
        """Takes a log in."""
        self._logs[key] = one
        self._by_file[one.file] = key

    def remove(self, key: int) -> Followed | None:
        """Lets go of a log; its file is the caller's to close."""
        one = self._logs.pop(key, None)
        if one is not None:
            self._by_file.pop(one.file, None)
        return one

    @property
    def unread_bytes(self) -> int:
        """Bytes known to be there and not read yet."""
        return sum(one.log.content.unread(one.log.position.offset) for one in self._logs.values())

    def surplus(self) -> list[int]:
        """Idle logs above the bound, the longest idle first."""
        excess = len(self._logs) - MOST_OPEN
        if excess <= 0:
            return []
        idle = [
            (one.moved_at, key)
            for key, one in self._logs.items()
            if one.path not in (None, files.STANDARD_INPUT) and not one.log.content.unread(one.log.position.offset)
        ]
        return [key for _, key in sorted(idle)[:excess]]
