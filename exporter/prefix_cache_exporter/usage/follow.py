"""Follows the logs of one source through every kind of rotation, without losing or repeating a line.

A log is told by device, inode, a hash of its head and the bytes before the offset, never by its name alone: inodes are
reused at once (fluent/fluent-bit#8025), copies have new ones, and packing changes the bytes
(open-telemetry/opentelemetry-collector-contrib#46105).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from . import files
from .contents import UnreadableError
from .following import piped
from .following.batches import Batch, Notes
from .following.discovery import Discovery
from .following.opened import LAST_LINE_SECONDS, ROTATED_SECONDS
from .following.opener import Opener
from .following.tracker import Tracker
from .log import ReplacedError
from .pieces import Piece

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from .following.opened import Followed
    from .following.piped import Piped

LOOK_SECONDS = 1.0
"""New files are looked for this often."""
PARTIAL_SECONDS = 600.0
"""A rotated file that ends in the middle of a line is followed until it has been idle this long."""
_TURN = 8
"""Pieces of one log before the next log has its turn."""


class Follower:
    """Follows every log of one source.

    Args:
        patterns: paths and globs; `-` is standard input.
        saved: stored cursors of this source by name.
        line_limit: longest line in bytes.
        clock: monotonic seconds.
        opener: opens a path for reading and returns the descriptor.
        stdin: standard input.
        resumed: whether the stored cursors are of the same patterns.
    """

    def __init__(
        self,
        patterns: Sequence[str],
        saved: Mapping[str, bytes],
        *,
        line_limit: int = 4 << 20,
        clock: Callable[[], float] = time.monotonic,
        opener: Callable[[str], int] | None = None,
        stdin: Piped = piped.PROCESS,
        resumed: bool = True,
    ) -> None:
        self._clock = clock
        self._notes = Notes()
        self._tracker = Tracker(saved, self._notes, line_limit=line_limit, clock=clock, resumed=resumed)
        self._opener = Opener(opener)
        self._stdin = stdin
        since = self._tracker.known.read_at if resumed else None
        self._discovery = Discovery(patterns, self._tracker, self._opener, stdin, since=since)
        self._looked: float | None = None

    @property
    def files(self) -> int:
        """Logs being followed."""
        return self._tracker.files

    @property
    def unread_bytes(self) -> int:
        """Bytes known to be there and not read yet."""
        return self._tracker.opened.unread_bytes

    @property
    def readable(self) -> bool:
        """Whether every matching file could be opened at the last look, and at least one matched."""
        return self._opener.readable

    def poll(self, *, draining: bool = False) -> Iterator[Batch]:
        """Reads everything that is there now, a bounded piece at a time.

        Args:
            draining: the process is about to end: whole but unterminated last lines are taken at once.
        """
        if draining or self._looked is None or self._clock() - self._looked >= LOOK_SECONDS:
            self._look()
        opened = self._tracker.opened
        busy = True
        while busy:
            busy = False
            turn = self._tracker.in_order()
            waiting: set[bytes] = set()
            for key in turn:
                one = opened.get(key)
                if one is None or one.log.position.place in waiting:
                    continue
                for _ in range(_TURN):
                    piece = self._advance(key, draining=draining)
                    if piece is None:
                        break
                    busy = True
                    yield self._notes.batch(piece, str(key))
                else:  # there is more, and what came after it in another file is not to be read before
                    waiting |= {one.log.position.place} - {b""}
            if self._notes:
                yield self._notes.batch(Piece([]))
            busy = busy or not opened.keys() <= set(turn)  # found while reading: a new file under an old name
            if self._discovery.crowded and self._tracker.make_room():
                self._look()
                busy = True
            elif busy and self._clock() - (self._looked or 0) >= LOOK_SECONDS:
                self._look()

    def close(self) -> None:
        """Closes every file. Positions stand where the last batch left them."""
        for key, one in self._tracker.opened:
            if one.path == files.STANDARD_INPUT:
                self._stdin.leave(one.log)
            self._tracker.close(key)

    def _look(self) -> None:
        self._looked = self._clock()
        self._discovery.look(self._looked)

    def _advance(self, key: int, *, draining: bool) -> Piece | None:
        one = self._tracker.opened.get(key)
        if one is None:
            return None
        try:
            if not one.judged and not self._discovery.judge(key, one, idle=self._idle(one) >= LAST_LINE_SECONDS):
                return None
            piece = one.log.advance() or self._at_rest(key, one, draining=draining)
        except ReplacedError:
            self._discovery.replaced(key, one, self._clock())
            return None
        except UnreadableError as error:
            self._tracker.refuse(key, error.reason)
            return None
        except OSError:  # a stale handle or a failing disk: opened again at the next look
            self._tracker.lose_sight(key)
            return None
        if piece is not None:
            one.moved_at = self._clock()
            if key in self._tracker.opened:
                self._tracker.known.store(key, one.log.position)
        return piece

    def _at_rest(self, key: int, one: Followed, *, draining: bool) -> Piece | None:
        """Nothing whole is left to read now: is this the end of the log, or of its last line?"""
        content, idle = one.log.content, self._idle(one)
        if content.complete:
            return self._tracker.finish(key, one)
        if one.path is None:
            if idle >= ROTATED_SECONDS and (idle >= PARTIAL_SECONDS or not one.log.waiting):
                return self._tracker.finish(key, one)
        elif not content.rewritable and one.path != files.STANDARD_INPUT:
            if idle >= ROTATED_SECONDS:  # an archive that nobody goes on writing
                self._tracker.refuse(key, "incomplete")
            return None
        return one.log.last() if draining or idle >= LAST_LINE_SECONDS else None

    def _idle(self, one: Followed) -> float:
        """Seconds since something was read."""
        return self._clock() - one.moved_at
