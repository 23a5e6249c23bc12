"""Taking files in: those of known logs, copies of them, and new logs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prefix_cache_exporter.usage import files, judge
from prefix_cache_exporter.usage.contents import Content, UnreadableError
from prefix_cache_exporter.usage.positions import REFUSED

from .recognise import Copy, recognise

if TYPE_CHECKING:
    from prefix_cache_exporter.usage.files import Match

    from .beginnings import Beginnings
    from .opened import Followed
    from .opener import Opener
    from .tracker import Tracker

_SECOND = 1_000_000_000
"""In nanoseconds."""


class Adopter:
    """Decides for each file that was found which log is read from it, if any.

    Attributes:
        crowded: whether files had to wait because too many were open.
    """

    def __init__(self, tracker: Tracker, opener: Opener, beginnings: Beginnings) -> None:
        self._tracker, self._opener, self._beginnings = tracker, opener, beginnings
        self.crowded = False

    def adopt(self, match: Match, *, beside: bool = False) -> None:
        """Takes a file in.

        Args:
            match: the file.
            beside: no pattern matches it, but it bears a rotated name of a log that is followed.
        """
        tracker = self._tracker
        if tracker.opened.reads(match.file) or tracker.aside.holds(match):
            return
        key = tracker.known.of_file(match.file, tracker.opened)
        known = None if key is None else tracker.known[key]
        if key is not None and known is not None and known.finished and known.stamp == match.stamp:
            tracker.aside.put(match.file, key, match.stamp)
            return
        if not tracker.make_room():
            self.crowded = True
            return
        try:
            content = self._opener.open(match)
        except UnreadableError as error:
            self._set_unreadable_aside(match, error.reason, key)
            return
        if content is None:
            return
        if not judge.is_early(content):
            self._settle(match, content, beside=beside)
        elif beside:
            content.close()
        else:
            tracker.follow(self._beginnings.log(match), content, match.file, match.path, judged=False)

    def judge(self, key: int, one: Followed, idle: bool) -> bool:
        """Whether a file that was too short to tell what it holds may be read now as what it was taken for.

        Args:
            key: the log that it was taken for.
            one: the same.
            idle: whether nothing was added for a while.
        """
        content = one.log.content
        if one.path is None or (judge.is_early(content) and idle):
            one.judged = True  # it was followed under its own name, so it is no copy
        elif not judge.is_early(content):
            self._tracker.opened.remove(key)
            self._tracker.known.forget(key)
            self._tracker.aside.release(key)
            match = files.Match(one.path, one.file, content.stamp())
            try:
                content = content.reopened()
            except UnreadableError as error:
                self._refuse(match, error.reason)
            else:
                self._settle(match, content)
        return one.judged

    def _settle(self, match: Match, content: Content, *, beside: bool = False) -> None:
        tracker = self._tracker
        try:
            found = recognise(match, content, tracker.known, tracker.opened, beside=beside)
        except UnreadableError as error:
            content.close()
            self._refuse(match, error.reason)
            return
        if isinstance(found, Copy):
            content.close()
            if found.clear:
                tracker.aside.put(match.file, found.key, match.stamp)
            else:
                tracker.aside.put(match.file, found.key)
            return
        key = self._beginnings.log(match) if found is None else found.key
        tracker.close(key)
        tracker.follow(key, content, match.file, None if beside else match.path)

    def _set_unreadable_aside(self, match: Match, reason: str, key: int | None) -> None:
        """Counts a file that cannot be read as lost, unless it was before, or was read before it was packed."""
        if key is None or self._tracker.known[key].mode != REFUSED:
            key = self._packed(match)
        if key is None:
            self._refuse(match, reason)
            return
        self._tracker.aside.put(match.file, key, match.stamp)
        if key in self._tracker.missing:
            self._tracker.end(key)

    def _packed(self, match: Match) -> int | None:
        """The log that an archive was made of, if it was read to its end, or still is.

        xz, zstd, bzip2 and logrotate give the archive the time of the last line, bzip2 in whole seconds.
        """
        name = files.name(match.path, os.path.realpath(match.path))
        for key, position in self._tracker.known.related(match.file, name):
            one = self._tracker.opened.get(key)
            stamp = position.stamp if one is None else one.log.content.stamp()
            # Of one that is neither open nor finished nobody saw the end, unless nothing is behind what was read.
            seen = one is not None or position.finished or stamp[0] == position.offset
            if position.mode != REFUSED and position.akin(name) and seen and _is_time_of(match.stamp[1], stamp[1]):
                return key
        return None

    def _refuse(self, match: Match, reason: str) -> None:
        self._tracker.refuse(self._beginnings.log(match), reason, match)


def _is_time_of(archive: int, packed: int) -> bool:
    """Whether an archive has the time of what it was made of, both in nanoseconds."""
    return archive == packed or (archive % _SECOND == 0 and archive // _SECOND == packed // _SECOND)
