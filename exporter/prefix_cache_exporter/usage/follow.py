"""Follows the logs of one source through every kind of rotation, without losing or repeating a line.

A log is told by device, inode, a hash of its head and the bytes before the offset, never by its name alone: inodes are
reused at once (fluent/fluent-bit#8025), copies have new ones, and packing changes the bytes
(open-telemetry/opentelemetry-collector-contrib#46105).
"""

from __future__ import annotations

import os
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec.structs import replace

from . import files, judge, positions
from .contents import Content, Pipe, UnreadableError, open_content
from .log import Log, Piece, ReplacedError
from .positions import REFUSED, Position

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from .files import File, Match

LOOK_SECONDS = 1.0
"""New files are looked for this often."""
LAST_LINE_SECONDS = 10.0
"""An unterminated last line that is whole JSON is taken after this idle time."""
ROTATED_SECONDS = 60.0
"""A file that no pattern matches any more is followed until it has been idle this long."""
PARTIAL_SECONDS = 600.0
"""The same where it ends in the middle of a line."""
MISSING_SECONDS = 5.0
"""How long the rest of a log that went away is looked for before it counts as lost."""
_TURN = 8
_MOST_OPEN = 256
_MOST_KNOWN = 4096


@dataclass(frozen=True, slots=True)
class Batch:
    """What one step of reading gave; its cursors must be stored together with what its lines led to.

    Attributes:
        lines: whole log lines without their ends.
        lost: lines that will never come, by reason.
        lost_files: files that went away or turned unreadable before their end, by reason.
        cursors: positions to store by name; None forgets one.
        log: names the log that the lines are of, over restarts and rotations.
        ended: logs to which nothing will be added, after these lines.
    """

    lines: Sequence[bytes] = ()
    lost: Mapping[str, int] = field(default_factory=dict)
    lost_files: Mapping[str, int] = field(default_factory=dict)
    cursors: Mapping[str, bytes | None] = field(default_factory=dict)
    log: str = ""
    ended: tuple[str, ...] = ()


@dataclass(slots=True)
class _Followed:
    log: Log
    file: File
    path: str | None
    moved_at: float
    judged: bool = True


class Follower:
    """Follows every log of one source.

    Args:
        patterns: paths and globs; `-` is standard input.
        saved: stored cursors of this source by name.
        line_limit: longest line in bytes.
        clock: monotonic seconds.
        opener: opens a path for reading and returns the descriptor.
        stdin: descriptor of standard input.

    Attributes:
        readable: whether every matching file could be opened at the last look, and at least one matched.
    """

    def __init__(
        self,
        patterns: Sequence[str],
        saved: Mapping[str, bytes],
        *,
        line_limit: int = 4 << 20,
        clock: Callable[[], float] = time.monotonic,
        opener: Callable[[str], int] | None = None,
        stdin: int = 0,
    ) -> None:
        self._patterns, self._limit, self._clock = list(patterns), line_limit, clock
        self._opener = opener or _open
        self._known: dict[int, Position] = {}
        for name, payload in saved.items():
            position = positions.load(payload)
            if position is not None and name.isdecimal():
                self._known[int(name)] = position
        self._known = dict(sorted(self._known.items()))
        self._next = max(self._known, default=0) + 1
        self._open: dict[int, _Followed] = {}
        self._by_file: dict[File, int] = {}
        self._set_aside: dict[File, tuple[int, tuple[int, int]]] = {}
        self._missing: dict[int, float | None] = {key: None for key, one in self._known.items() if not one.finished}
        self._folders: set[str] = set()
        self._barred: set[File] = set()
        self._matched: Collection[File] = ()
        self._places = {one.place for one in self._known.values()}
        self._noted: Counter[str] = Counter()
        self._stored: dict[str, bytes | None] = {}
        self._ended: list[str] = []
        self._looked: float | None = None
        self._pipe_unread = files.STANDARD_INPUT in self._patterns
        self._stdin = stdin
        self.readable = False

    @property
    def files(self) -> int:
        """Logs being followed."""
        spared = {key for key, _ in self._set_aside.values() if not self._known[key].finished}
        return len(self._open.keys() | spared)

    @property
    def unread_bytes(self) -> int:
        """Bytes known to be there and not read yet."""
        return sum(one.log.content.unread(one.log.position.offset) for one in self._open.values())

    def poll(self, *, draining: bool = False) -> Iterator[Batch]:
        """Reads everything that is there now, a bounded piece at a time.

        Args:
            draining: the process is about to end: whole but unterminated last lines are taken at once.
        """
        now = self._clock()
        if draining or self._looked is None or now - self._looked >= LOOK_SECONDS:
            self._look()
        busy = True
        while busy:
            busy = False
            turn = list(self._open)
            for key in turn:
                for _ in range(_TURN):
                    piece = self._advance(key, draining=draining)
                    if piece is None:
                        break
                    busy = True
                    yield self._batch(piece, str(key))
            if self._noted or self._stored or self._ended:
                yield self._batch(Piece([]))
            busy = busy or not self._open.keys() <= set(turn)  # found while reading: a new file under an old name
            if busy and self._clock() - (self._looked or 0) >= LOOK_SECONDS:
                self._look()

    def close(self) -> None:
        """Closes every file. Positions stand where the last batch left them."""
        for key in list(self._open):
            self._close(key)

    def _batch(self, piece: Piece, log: str = "") -> Batch:
        batch = Batch(piece.lines, piece.lost, self._noted, self._stored, log, tuple(self._ended))
        self._noted, self._stored, self._ended = Counter(), {}, []
        return batch

    # Reading.

    def _advance(self, key: int, *, draining: bool) -> Piece | None:
        one = self._open.get(key)
        if one is None:
            return None
        try:
            if not one.judged and not self._judge(key, one):
                return None
            piece = one.log.advance() or self._at_rest(key, one, draining=draining)
        except ReplacedError:
            self._replaced(key, one)
            return None
        except UnreadableError as error:
            self._refuse(key, error.reason)
            return None
        except OSError:  # a stale handle or a failing disk: opened again at the next look
            self._close(key)
            self._missing[key] = None
            return None
        if piece is not None:
            one.moved_at = self._clock()
            if key in self._open:
                self._store(key, one.log.position)
        return piece

    def _at_rest(self, key: int, one: _Followed, *, draining: bool) -> Piece | None:
        """Nothing whole is left to read now: is this the end of the log, or of its last line?"""
        content = one.log.content
        idle = self._clock() - one.moved_at
        if content.complete:
            return self._finish(key, one)
        if one.path is None:
            if idle >= ROTATED_SECONDS and (idle >= PARTIAL_SECONDS or not one.log.waiting):
                return self._finish(key, one)
        elif not content.rewritable and one.path != files.STANDARD_INPUT:
            if idle >= ROTATED_SECONDS:  # an archive that nobody goes on writing
                self._refuse(key, "incomplete")
            return None
        return one.log.last() if draining or idle >= LAST_LINE_SECONDS else None

    def _finish(self, key: int, one: _Followed) -> Piece:
        stamp = one.log.content.stamp()
        piece = one.log.finish()
        position = replace(one.log.position, finished=True, stamp=stamp)
        self._close(key)
        self._release(key)
        self._store(key, position)
        self._set_aside[position.file] = (key, stamp)
        self._prune()
        return piece

    # Looking for files.

    def _look(self) -> None:
        now = self._looked = self._clock()
        listing = files.look(self._patterns)
        self._matched = listing.matches.keys()
        self._folders |= listing.folders
        self.readable = listing.readable
        self._barred.clear()
        for one in self._open.values():
            match = listing.matches.get(one.file)
            if one.path != files.STANDARD_INPUT:
                one.path = match.path if match else None
        beside, whole = files.siblings(self._folders, self._places)
        here = listing.matches.keys() | {match.file for match in beside}
        for file in [file for file in self._set_aside if file not in here] if whole else ():
            key, _ = self._set_aside.pop(file)
            if key not in self._open and not self._known[key].finished:
                self._missing[key] = None  # closed while idle, then renamed
        self._check()
        if self._pipe_unread:
            self._pipe_unread = False
            self._follow(self._new(b""), Pipe(self._stdin), (-1, -1), files.STANDARD_INPUT)
        self.readable = self.readable or files.STANDARD_INPUT in self._patterns
        known = {one.file for one in self._known.values()}
        # What is known first, so that copies find their original open; then the oldest.
        for match in sorted(listing.matches.values(), key=lambda match: (match.file not in known, match.stamp[1])):
            self._adopt(match)
        self._seek(now)
        for match in beside:  # rotated so fast, or while nobody looked, that only its rotated name was ever seen
            if match.file not in listing.matches:
                self._adopt(match, beside=True)
        self._spare()

    def _check(self) -> None:
        """Notices replaced files before copies of them are judged."""
        for key, one in list(self._open.items()):
            content, position = one.log.content, one.log.position
            try:
                replaced = content.rewritable and not position.fits(content)
            except OSError:
                continue
            if replaced:
                self._replaced(key, one)

    def _adopt(self, match: Match, *, beside: bool = False) -> None:
        """Takes a file in: one that is known, a copy of one that is, or a new one.

        Args:
            match: the file.
            beside: no pattern matches it, but it bears a rotated name of a log that is followed.
        """
        if match.file in self._by_file or self._set_aside.get(match.file, (0, ()))[1] == match.stamp:
            return
        known = self._known_as(match)
        if known is not None and self._known[known].finished and self._known[known].stamp == match.stamp:
            self._set_aside[match.file] = (known, match.stamp)
            return
        try:
            content = self._content(match)
        except UnreadableError as error:
            if known is None or self._known[known].mode != REFUSED:
                self._refuse(self._new(files.family(match.path), match.file, match.path), error.reason, match)
            else:
                self._set_aside[match.file] = (known, match.stamp)
            return
        if content is None:
            return
        if not judge.is_early(content):
            self._settle(match, content, beside=beside)
        elif beside:
            content.close()
        else:
            key = self._new(files.family(match.path), match.file, match.path)
            self._follow(key, content, match.file, match.path)
            self._open[key].judged = False

    def _judge(self, key: int, one: _Followed) -> bool:
        """Whether a file that was too short to tell what it holds may be read now as what it was taken for."""
        idle = self._clock() - one.moved_at
        if one.path is None or (judge.is_early(one.log.content) and idle >= LAST_LINE_SECONDS):
            one.judged = True  # it was followed under its own name, so it is no copy
        elif not judge.is_early(one.log.content):
            del self._open[key], self._by_file[one.file], self._known[key]
            self._stored[str(key)] = None
            self._release(key)
            match = files.Match(one.path, one.file, one.log.content.stamp())
            try:
                content = one.log.content.reopened()
            except UnreadableError as error:
                self._refuse(self._new(files.family(match.path), match.file, match.path), error.reason, match)
            else:
                self._settle(match, content)
        return one.judged

    def _settle(self, match: Match, content: Content, *, beside: bool = False) -> None:
        try:
            key = self._recognise(match, content, beside=beside)
        except UnreadableError as error:
            content.close()
            self._refuse(self._new(files.family(match.path), match.file, match.path), error.reason, match)
            return
        if key is not None:
            self._follow(key, content, match.file, None if beside else match.path)
        else:
            content.close()

    def _known_as(self, match: Match) -> int | None:
        found = [key for key, one in self._known.items() if one.file == match.file and key not in self._open]
        return found[-1] if found else None

    def _recognise(self, match: Match, content: Content, *, beside: bool) -> int | None:
        """Which log a file holds; None where it is a copy of what another file gives, or that is not clear yet."""
        family = files.family(match.path)
        for key, position in reversed(self._known.items()):
            if position.mode == REFUSED:
                if beside and position.head_length and position.family == family and judge.fits(position, content):
                    self._set_aside[match.file] = (key, match.stamp)
                    return None
                continue
            if position.file == match.file and key not in self._open and judge.fits(position, content):
                return key
            if position.family != family:
                continue
            if key in self._open:
                kind = judge.compare(self._open[key].log, content)
            elif not position.tells():
                continue
            elif judge.fits(position, content):
                return key
            else:
                kind = judge.shorter(position, content)
            if kind != judge.OTHER:
                self._set_aside[match.file] = (key, match.stamp if kind == judge.COPY else (-1, -1))
                return None
        return self._new(family, match.file, match.path)

    def _content(self, match: Match) -> Content | None:
        """Opens a file; None where it is gone, is another one by now, or may not be read."""
        try:
            fd = self._opener(match.path)
        except FileNotFoundError:
            return None
        except OSError:
            self.readable = False
            self._barred.add(match.file)
            return None
        info = os.fstat(fd)
        if (info.st_dev, info.st_ino) != match.file:
            os.close(fd)
            return None
        return open_content(fd)

    def _follow(self, key: int, content: Content, file: File, path: str | None) -> None:
        position = replace(self._known[key], device=file[0], inode=file[1], finished=False, stamp=(0, 0))
        self._missing.pop(key, None)
        self._set_aside.pop(file, None)
        if path not in (None, files.STANDARD_INPUT):
            self._folders.add(files.folder_of(str(path)))
        self._known[key] = position
        self._open[key] = _Followed(Log(content, position, self._limit), file, path, self._clock())
        self._by_file[file] = key

    def _new(self, family: bytes, file: File = (-1, -1), path: str | None = None) -> int:
        """A key for a log that was never seen. What lies rotated beside the first of its name came before it."""
        key = self._next
        self._next += 1
        place = b"" if path is None else files.place(os.path.realpath(path))
        self._store(key, Position(*file, family=family, place=place))
        if path is not None and place not in self._places:
            self._places.add(place)
            for match in files.siblings((files.folder_of(path),), {place})[0]:
                if match.file not in self._by_file and match.file not in self._matched and match.file != file:
                    self._pass_over(match)
        return key

    def _pass_over(self, match: Match) -> None:
        """Remembers a rotated file from before the first look, so that it is never taken for one that came after."""
        try:
            content = self._content(match)
        except UnreadableError:
            return
        if content is None:
            return
        try:
            size = content.extent(match.stamp[0]) if content.rewritable else min(positions.HEAD, match.stamp[0])
            blank = Position(*match.file, family=files.family(match.path), place=files.place(match.path))
            position = positions.moved(blank, content, size, REFUSED, 0)
        except UnreadableError:
            return
        finally:
            content.close()
        key = self._next
        self._next += 1
        self._store(key, replace(position, finished=True, stamp=match.stamp))
        self._set_aside[match.file] = (key, match.stamp)

    # Files that go away.

    def _replaced(self, key: int, one: _Followed) -> None:
        """A followed file holds something else: its rest may be in a copy, its new content begins at 0."""
        self._close(key)
        self._release(key)
        self._missing[key] = None
        self._seek(self._clock())
        if one.path is not None and one.file not in self._by_file:
            self._adopt(files.Match(one.path, one.file, (-1, -1)))

    def _seek(self, now: float) -> None:
        """Looks for the rest of logs whose file is gone: renamed, copied or packed, in the folders they lay in."""
        if not self._missing:
            return
        candidates, whole = files.siblings(self._folders)
        for key, since in list(self._missing.items()):
            position = self._known[key]
            if self._find(key, position, candidates) or position.file in self._barred:
                continue
            since = self._missing[key] = now if since is None else since  # noqa: PLW2901  # its first value is now
            if whole and now - since >= MISSING_SECONDS:
                del self._missing[key]
                if position.offset:
                    self._noted["gone"] += 1
                self._store(key, replace(position, finished=True))

    def _find(self, key: int, position: Position, candidates: list[Match]) -> bool:
        for match in candidates:
            # Its own file under any name, if something of it is known by content: inodes are used again.
            own = match.file == position.file
            akin = files.family(match.path) == position.family
            if match.file in self._by_file or not ((own and (akin or position.offset)) or (akin and position.tells())):
                continue
            try:
                content = self._content(match)
            except UnreadableError:
                continue
            if content is not None and judge.fits(position, content):
                self._follow(key, content, match.file, None)
                return True
            if content is not None:
                content.close()
        return False

    def _refuse(self, key: int, reason: str, match: Match | None = None) -> None:
        """Gives up a log that cannot be read, once."""
        self._noted[reason] += 1
        one = self._open.get(key)
        stamp = match.stamp if match else one.log.content.stamp() if one else (0, 0)
        self._close(key)
        self._release(key)
        position = replace(self._known[key], mode=REFUSED, finished=True, stamp=stamp)
        self._store(key, position)
        self._set_aside[position.file] = (key, stamp)

    def _release(self, key: int) -> None:
        """Lets files be judged again that were taken for copies of a log."""
        for file in [file for file, (of, _) in self._set_aside.items() if of == key]:
            del self._set_aside[file]

    def _close(self, key: int) -> None:
        one = self._open.pop(key, None)
        if one is not None:
            self._by_file.pop(one.file, None)
            self._known[key] = one.log.position
            one.log.content.close()

    def _store(self, key: int, position: Position) -> None:
        self._known[key] = position
        if position.finished:
            self._ended.append(str(key))
        if position.file != (-1, -1):  # a pipe cannot be read again
            self._stored[str(key)] = positions.dump(position)

    def _spare(self) -> None:
        """Closes idle files above the bound; they are opened again when they change."""
        surplus = len(self._open) - _MOST_OPEN
        if surplus <= 0:
            return
        idle = [
            (one.moved_at, key)
            for key, one in self._open.items()
            if one.path not in (None, files.STANDARD_INPUT) and not one.log.content.unread(one.log.position.offset)
        ]
        for _, key in sorted(idle)[:surplus]:
            one = self._open[key]
            stamp = one.log.content.stamp()
            self._close(key)
            self._set_aside[one.file] = (key, stamp)

    def _prune(self) -> None:
        """Forgets the oldest finished logs above the bound."""
        finished = [key for key, one in self._known.items() if one.finished and key not in self._open]
        here = {key for key, _ in self._set_aside.values()}  # a file that is still there would be read again
        for key in finished[: max(0, len(finished) - _MOST_KNOWN)]:
            if key not in here:
                del self._known[key]
                self._stored[str(key)] = None


def _open(path: str) -> int:
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
