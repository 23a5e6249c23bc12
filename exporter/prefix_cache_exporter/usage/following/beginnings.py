"""Logs that were never seen before. What lies rotated beside the first of a name came before it, and is history.

Save for what was written to since somebody looked: then there was no such log, so all of it is new. It may have been
rotated between two looks, or while the exporter was away.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from msgspec.structs import replace

from prefix_cache_exporter.usage import files, positions
from prefix_cache_exporter.usage.contents import UnreadableError
from prefix_cache_exporter.usage.positions import REFUSED, Position

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from prefix_cache_exporter.usage.files import File, Match

    from .opener import Opener
    from .tracker import Tracker


class Beginnings:
    """Gives new logs their numbers."""

    def __init__(self, tracker: Tracker, opener: Opener) -> None:
        self._tracker, self._opener = tracker, opener
        self._since: int | None = None
        self._matched: Container[File] = ()
        self._folders: dict[str, Mapping[bytes, Sequence[Match]]] = {}

    def look(self, matched: Container[File], since: int | None) -> None:
        """Another look at the disk begins.

        Args:
            matched: files that patterns match; they are no history.
            since: when one looked before, in nanoseconds since 1970; None where nobody ever did.
        """
        self._matched, self._since = matched, since
        self._folders.clear()

    def log(self, match: Match) -> int:
        """A number for a log that begins in a file."""
        known = self._tracker.known
        family, place = files.name(match.path, os.path.realpath(match.path))
        key = known.add(Position(*match.file, family=family, place=place))
        if place not in known.places:
            known.places.add(place)
            for beside in self._lying_in(files.folder_of(match.path)).get(place, ()):
                is_new = self._since is not None and beside.stamp[1] > self._since
                if not is_new and not self._is_taken(beside) and beside.file != match.file:
                    self._pass_over(beside)
        return key

    def _lying_in(self, folder: str) -> Mapping[bytes, Sequence[Match]]:
        """What a folder held at this look, by place: there may be thousands of logs in it, each the first of a name."""
        if folder not in self._folders:
            by_place: dict[bytes, list[Match]] = {}
            for match in files.siblings((folder,))[0]:
                by_place.setdefault(files.place(match.path), []).append(match)
            self._folders[folder] = by_place
        return self._folders[folder]

    def _is_taken(self, match: Match) -> bool:
        return match.file in self._matched or self._tracker.opened.reads(match.file)

    def _pass_over(self, match: Match) -> None:
        """Remembers a rotated file from before the first look, so that it is never taken for one that came after."""
        family, place = files.name(match.path)
        position = Position(*match.file, family=family, place=place, mode=REFUSED)
        # One that cannot be read is told by its stamp alone.
        with contextlib.suppress(UnreadableError):
            content = self._opener.open(match)
            if content is None:
                return
            with contextlib.closing(content):
                size = content.extent(match.stamp[0]) if content.rewritable else min(positions.HEAD, match.stamp[0])
                position = positions.moved(position, content, size, REFUSED, 0)
        key = self._tracker.known.add(replace(position, finished=True, stamp=match.stamp))
        self._tracker.aside.put(match.file, key, match.stamp)
