"""Logs that were never seen before. What lies rotated beside the first of a name came before it, and is history."""

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
        self._matched: Container[File] = ()
        self._folders: dict[str, Mapping[bytes, Sequence[Match]]] = {}

    def look(self, matched: Container[File]) -> None:
        """Another look at the disk begins; files that patterns match are no history."""
        self._matched = matched
        self._folders.clear()

    def log(self, match: Match) -> int:
        """A number for a log that begins in a file."""
        known = self._tracker.known
        family, place = files.name(match.path, os.path.realpath(match.path))
        key = known.add(Position(*match.file, family=family, place=place))
        if place not in known.places:
            known.places.add(place)
            for beside in self._lying_in(files.folder_of(match.path)).get(place, ()):
                if not self._is_taken(beside) and beside.file != match.file:
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
