"""The rests of logs whose file is gone: renamed, copied or packed, in the folders they lay in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.usage import files, judge
from prefix_cache_exporter.usage.contents import UnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prefix_cache_exporter.usage.files import Match
    from prefix_cache_exporter.usage.positions import Position

    from .opener import Opener
    from .tracker import Tracker

MISSING_SECONDS = 5.0
"""How long the rest of a log that went away is looked for before it counts as lost."""


class Rests:
    """Looks for what is left to read of logs that are out of sight."""

    def __init__(self, tracker: Tracker, opener: Opener) -> None:
        self._tracker, self._opener = tracker, opener

    def seek(self, now: float) -> None:
        """Looks through the folders once; what has been looked for long enough is given up."""
        missing = self._tracker.missing
        if not missing:
            return
        found, whole = files.siblings(self._tracker.folders)
        candidates = _Candidates(found)
        for key, since in list(missing.items()):
            if not self._tracker.make_room():
                return  # nothing is given up that could not be looked for
            position = self._tracker.known[key]
            if self._find(key, position, candidates) or position.file in self._opener.barred:
                continue
            if since is None:
                since = missing[key] = now  # noqa: PLW2901  # its first value
            if whole and now - since >= MISSING_SECONDS:
                self._tracker.give_up(key)

    def _find(self, key: int, position: Position, candidates: _Candidates) -> bool:
        """Whether the rest of a log was found, or may be in a file that cannot be opened just now."""
        barred = False
        for match in candidates.of(position):
            if self._tracker.opened.reads(match.file):
                continue
            try:
                content = self._opener.open(match)
            except UnreadableError:
                continue
            if content is None:
                barred = barred or match.file in self._opener.barred
            elif judge.fits(position, content):
                self._tracker.follow(key, content, match.file, None)
                return True
            else:
                content.close()
        return barred


class _Candidates:
    """Files in which rests may be, by what tells that.

    Args:
        matches: files, the oldest first.
    """

    def __init__(self, matches: Sequence[Match]) -> None:
        self._matches = matches
        self._by_file = {match.file: place for place, match in enumerate(matches)}
        self._by_name: dict[bytes, list[int]] = {}
        for place, match in enumerate(matches):
            for part in files.name(match.path):
                self._by_name.setdefault(part, []).append(place)

    def of(self, position: Position) -> Iterator[Match]:
        """Files that may hold the rest of a log."""
        akin = {*self._by_name.get(position.family, ()), *self._by_name.get(position.place, ())}
        own = self._by_file.get(position.file)
        places = akin if position.tells() else set()
        # Its own file under any name, if something of it is known by content: inodes are used again.
        if own is not None and (own in akin or position.offset):
            places = places | {own}
        return (self._matches[place] for place in sorted(places))
