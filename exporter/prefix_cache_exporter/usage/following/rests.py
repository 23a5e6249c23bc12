"""The rests of logs whose file is gone: renamed, copied or packed, in the folders they lay in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.usage import files, judge
from prefix_cache_exporter.usage.contents import UnreadableError

if TYPE_CHECKING:
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
        candidates, whole = files.siblings(self._tracker.folders)
        for key, since in list(missing.items()):
            position = self._tracker.known[key]
            if self._find(key, position, candidates) or position.file in self._opener.barred:
                continue
            if since is None:
                since = missing[key] = now  # noqa: PLW2901  # its first value
            if whole and now - since >= MISSING_SECONDS:
                self._tracker.give_up(key)

    def _find(self, key: int, position: Position, candidates: list[Match]) -> bool:
        for match in candidates:
            # Its own file under any name, if something of it is known by content: inodes are used again.
            own = match.file == position.file
            akin = position.akin(files.name(match.path))
            if not ((own and (akin or position.offset)) or (akin and position.tells())):
                continue
            if self._tracker.opened.reads(match.file):
                continue
            try:
                content = self._opener.open(match)
            except UnreadableError:
                continue
            if content is not None and judge.fits(position, content):
                self._tracker.follow(key, content, match.file, None)
                return True
            if content is not None:
                content.close()
        return False
