"""The logs that are open."""

from __future__ import annotations

import resource
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, KeysView

    from prefix_cache_exporter.usage.files import File
    from prefix_cache_exporter.usage.log import Log

LAST_LINE_SECONDS = 10.0
"""An unterminated last line that is whole JSON is taken after this idle time; nobody waits longer for half a one."""

ROTATED_SECONDS = 60.0
"""A file that no pattern matches any more is followed until it has been idle this long."""


def most_open() -> int:
    """How many files a source may hold open: a quarter of what the process may, for it is not alone in there."""
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 4096 if allowed == resource.RLIM_INFINITY else max(16, min(4096, allowed // 4))


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

    def written(self) -> int:
        """When the file was written to last, in nanoseconds since 1970."""
        try:
            return self.log.content.stamp()[1]
        except OSError:  # a stale handle, of which reading tells
            return 0

    def may_rest(self, now: float) -> bool:
        """Whether nothing is left to read, nor to wait for; `now` in monotonic seconds."""
        content = self.log.content
        if not (self.judged and content.rewritable and self.log.rests_at == content.stamp()):
            return False
        if self.path is None:
            return not self.log.waiting
        return not content.unread(self.log.position.offset) or now - self.moved_at >= LAST_LINE_SECONDS


class Opened:
    """Open logs by number and by file.

    Args:
        most: how many may be open at once.
    """

    def __init__(self, most: int) -> None:
        self._most = most
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

    @property
    def full(self) -> bool:
        """Whether no further file may be opened."""
        return len(self._logs) >= self._most

    def at_rest(self, now: float) -> list[int]:
        """Logs whose file may be closed until it changes, the longest idle first; `now` in monotonic seconds."""
        found = [(one.moved_at, key) for key, one in self._logs.items() if one.may_rest(now)]
        return [key for _, key in sorted(found)]
