"""The life of a log: begun, followed from file to file, out of sight for a while, finished or given up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from prefix_cache_exporter.usage import files
from prefix_cache_exporter.usage.contents import Gzip, Pipe
from prefix_cache_exporter.usage.log import Log
from prefix_cache_exporter.usage.positions import REFUSED

from .aside import Aside
from .known import Known
from .opened import ROTATED_SECONDS, Followed, Opened, most_open

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from prefix_cache_exporter.usage.contents import Content
    from prefix_cache_exporter.usage.files import File, Match
    from prefix_cache_exporter.usage.pieces import Piece

    from .batches import Notes
    from .piped import Piped


_CLOSED_AT_ONCE = 64
"""To look for files to close costs the same for one as for many."""


class Tracker:
    """Keeps what is known, what is open and what is set aside in step with one another.

    Args:
        saved: stored cursors by name.
        notes: takes what is to be stored and counted.
        line_limit: longest line in bytes.
        clock: monotonic seconds.
        resumed: whether the stored cursors are of the same patterns; else files that they no longer match are not lost.

    Attributes:
        known: positions of all logs.
        opened: the logs that are open.
        aside: files that give nothing new.
        missing: logs out of sight, and since when they were looked for in vain.
        folders: real folders in which rotated files may lie.
    """

    def __init__(
        self,
        saved: Mapping[str, bytes],
        notes: Notes,
        *,
        line_limit: int,
        clock: Callable[[], float],
        resumed: bool = True,
    ) -> None:
        self._notes, self._limit, self._clock = notes, line_limit, clock
        self.known = Known(saved, notes)
        self.opened = Opened(most_open())
        self.aside = Aside()
        self.missing: dict[int, float | None] = dict.fromkeys(self.known.unfinished())
        self._let_go = frozenset() if resumed else frozenset(self.missing)
        self.folders: set[str] = set()
        self._rested: dict[int, float] = {}

    @property
    def files(self) -> int:
        """Logs being followed, also those whose file is closed while idle."""
        spared = {key for key in self.aside.logs() if not self.known[key].finished}
        return len(self.opened.keys() | spared)

    def in_order(self) -> list[int]:
        """Open logs in the order in which their lines were written, as far as names and times tell.

        What was rotated away comes before what has its name now: of two lines about one request the later one holds.
        """
        ages = {key: (one.path is not None, one.written()) for key, one in self.opened}
        return sorted(ages, key=ages.__getitem__)

    def follow(self, key: int, content: Content, file: File, path: str | None, *, judged: bool = True) -> None:
        """Reads a log on from a file."""
        position = replace(self.known[key], device=file[0], inode=file[1], finished=False, stamp=(0, 0))
        self.missing.pop(key, None)
        self._rested.pop(key, None)
        before = self.aside.take(file)
        if before is not None and before != key and self.known[before].file == file:
            self._miss(before)  # it was closed at rest, and its file holds something else by now
        if path not in (None, files.STANDARD_INPUT):
            self.folders.add(files.folder_of(str(path)))
        self.known.move(key, position)
        log = Log(content, position, self._limit)
        self.opened.add(key, Followed(log, file, path, self._clock(), judged))

    def read_on(self, pipe: Piped) -> None:
        """Reads standard input, on from where another follower left it; not where one has come to its end."""
        log = pipe.take(self._limit)
        if log is not None:
            pipe.key = self.known.add(log.position, pipe.key)
            self.opened.add(pipe.key, Followed(log, log.position.file, files.STANDARD_INPUT, self._clock()))

    def lose_sight(self, key: int) -> None:
        """A log's file does not hold it any more, or cannot be read just now: its rest is looked for."""
        self.close(key)
        self.missing[key] = None

    def give_up(self, key: int) -> None:
        """The rest of a log was nowhere to be found."""
        if self.known[key].offset and key not in self._let_go:
            self._notes.lose("gone")
        self.end(key)

    def end(self, key: int) -> None:
        """Nothing is left to read of a log that is out of sight."""
        self.missing.pop(key, None)
        self.known.store(key, replace(self.known[key], finished=True))

    def finish(self, key: int, one: Followed) -> Piece:
        """Takes the end of a log to which nothing will be added."""
        content = one.log.content
        stamp = content.stamp()
        piece = one.log.finish()
        if isinstance(content, Gzip | Pipe) and content.truncated:
            self._notes.lose("incomplete")
        position = replace(one.log.position, finished=True, stamp=stamp)
        self.close(key)
        self.aside.release(key)
        self.known.store(key, position)
        self.aside.put(position.file, key, stamp)
        self.known.prune(self.opened, self.aside.logs())
        return piece

    def refuse(self, key: int, reason: str, match: Match | None = None) -> None:
        """Gives up a log that cannot be read, once."""
        self._notes.lose(reason)
        one = self.opened.get(key)
        stamp = match.stamp if match else one.log.content.stamp() if one else (0, 0)
        self.close(key)
        self.aside.release(key)
        position = replace(self.known[key], mode=REFUSED, finished=True, stamp=stamp)
        self.known.store(key, position)
        self.aside.put(position.file, key, stamp)

    def make_room(self) -> bool:
        """Whether another file may be opened. Where too many are open, closes those at rest until they change."""
        if self.opened.full:
            for key in self.opened.at_rest(self._clock())[:_CLOSED_AT_ONCE]:
                self._rest(key)
        return not self.opened.full

    def _rest(self, key: int) -> None:
        one = self.opened.get(key)
        if one is None or one.log.rests_at is None:
            return
        stamp = one.log.rests_at  # from before it was looked at last: what came meanwhile makes it another one
        self.close(key)
        if one.path is None:  # rotated away
            self.known.store(key, replace(one.log.position, finished=True, stamp=stamp))
        else:
            self._rested[key] = one.moved_at
        self.aside.put(one.file, key, stamp)

    def drop_absent(self, here: set[File], seen: float) -> None:
        """Notices that files set aside are gone: a log that was closed at rest may go on under another name.

        One to which nothing had been added for long has ended, as if it had been open.

        Args:
            here: the files that are there.
            seen: when the others still were, in monotonic seconds.
        """
        for key in self.aside.drop_absent(here):
            if seen - self._rested.get(key, seen) >= ROTATED_SECONDS and key not in self.opened:
                self.end(key)
            else:
                self._miss(key)

    def _miss(self, key: int) -> None:
        if key not in self.opened and not self.known[key].finished:
            self.missing[key] = None

    def close(self, key: int) -> None:
        """Closes a log's file; its position stays where the last batch left it."""
        one = self.opened.remove(key)
        if one is not None:
            self.known.move(key, one.log.position)
            one.log.content.close()
