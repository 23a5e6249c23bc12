"""Looking at the disk: new files, files that turned into others, and files that went away."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from prefix_cache_exporter.usage import files

from .adopt import Adopter
from .beginnings import Beginnings
from .rests import Rests

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .opened import Followed
    from .opener import Opener
    from .piped import Piped
    from .tracker import Tracker


_COARSE = 100_000_000
"""Times of files lag behind the clock: by a tick of the kernel, on the network by more. In nanoseconds."""


class Discovery:
    """Finds the files of a source, and has them taken in.

    Args:
        patterns: paths and globs; `-` is standard input.
        tracker: the logs.
        opener: opens files.
        stdin: standard input.
        since: when the same patterns were looked at last, in nanoseconds since 1970; None where they never were.
    """

    def __init__(
        self, patterns: Sequence[str], tracker: Tracker, opener: Opener, stdin: Piped, *, since: int | None = None
    ) -> None:
        self._patterns, self._tracker, self._opener = list(patterns), tracker, opener
        self._beginnings = Beginnings(tracker, opener)
        self._adopter = Adopter(tracker, opener, self._beginnings)
        self._rests = Rests(tracker, opener)
        self._looked, self._since = 0.0, since
        self._piped = files.STANDARD_INPUT in self._patterns
        self._pipe: Piped | None = stdin if self._piped else None

    @property
    def crowded(self) -> bool:
        """Whether files that were found had to wait because too many were open."""
        return self._adopter.crowded

    def look(self, now: float) -> None:
        """Looks at the disk once; `now` in monotonic seconds."""
        tracker = self._tracker
        self._adopter.crowded = False
        began = time.time_ns()
        listing = files.look(self._patterns)
        self._beginnings.look(listing.matches.keys(), self._since)
        self._since = began - _COARSE
        tracker.folders |= listing.folders
        self._opener.begin(readable=listing.readable or self._piped)
        for _, one in tracker.opened:
            match = listing.matches.get(one.file)
            if one.path != files.STANDARD_INPUT:
                one.path = match.path if match else None
        beside, whole = files.siblings(tracker.folders, tracker.known.places)
        if whole:
            tracker.drop_absent(listing.matches.keys() | {match.file for match in beside}, self._looked)
            self._looked = now
        self._check(now)
        self._take_pipe()
        known = tracker.known.files()
        # What is known first, so that copies find their original open; then the oldest.
        for match in sorted(listing.matches.values(), key=lambda match: (match.file not in known, match.stamp[1])):
            self._adopter.adopt(match)
        self._rests.seek(now)
        for match in beside:  # rotated so fast, or while nobody looked, that only its rotated name was ever seen
            if match.file not in listing.matches:
                self._adopter.adopt(match, beside=True)

    def replaced(self, key: int, one: Followed, now: float) -> None:
        """A followed file holds something else: its rest may be in a copy, its new content begins at 0."""
        self._tracker.lose_sight(key)
        self._tracker.aside.release(key)
        self._rests.seek(now)
        if one.path is not None and not self._tracker.opened.reads(one.file):
            self._adopter.adopt(files.Match(one.path, one.file, (-1, -1)))

    def judge(self, key: int, one: Followed, *, idle: bool) -> bool:
        """Whether a file that was too short to tell what it holds may be read by now as what it was taken for."""
        return self._adopter.judge(key, one, idle=idle)

    def _check(self, now: float) -> None:
        """Notices replaced files before copies of them are judged."""
        for key, one in self._tracker.opened:
            content, position = one.log.content, one.log.position
            try:
                changed = one.log.rests_at is None or one.log.rests_at != content.stamp()
                replaced = changed and content.rewritable and not position.fits(content)
            except OSError:
                continue
            if replaced:
                self.replaced(key, one, now)

    def _take_pipe(self) -> None:
        if self._pipe is not None:
            pipe, self._pipe = self._pipe, None
            self._tracker.read_on(pipe)
