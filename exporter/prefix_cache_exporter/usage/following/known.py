"""Every log that was ever seen, by a number of its own, and where reading stands in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.usage import positions

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from prefix_cache_exporter.usage.files import File
    from prefix_cache_exporter.usage.positions import Position

    from .batches import Notes

MOST_KNOWN = 4096
"""Finished logs above this number are forgotten, the oldest first."""


class Known:
    """Positions by number, in the order in which the logs were first seen.

    Args:
        saved: stored cursors by name; what another version wrote is left alone.
        notes: takes what is to be stored.

    Attributes:
        places: folders and families of all logs that were ever seen.
    """

    def __init__(self, saved: Mapping[str, bytes], notes: Notes) -> None:
        found: dict[int, Position] = {}
        for name, payload in saved.items():
            position = positions.load(payload)
            if position is not None and name.isdecimal():
                found[int(name)] = position
        self._positions = dict(sorted(found.items()))
        self._next = max(self._positions, default=0) + 1
        self._notes = notes
        self.places = {one.place for one in self._positions.values()}

    def __getitem__(self, key: int) -> Position:
        return self._positions[key]

    def newest_first(self) -> Iterator[tuple[int, Position]]:
        """All logs, the one that was seen last at the front."""
        return reversed(self._positions.items())

    def unfinished(self) -> list[int]:
        """Logs of which more may come."""
        return [key for key, one in self._positions.items() if not one.finished]

    def files(self) -> set[File]:
        """The files that logs were last read from."""
        return {one.file for one in self._positions.values()}

    def of_file(self, file: File, busy: Container[int]) -> int | None:
        """The log that was last read from a file, none of the `busy` ones."""
        return next((key for key, one in self.newest_first() if one.file == file and key not in busy), None)

    def add(self, position: Position) -> int:
        """Takes in a log that was never seen, and gives its number."""
        key = self._next
        self._next += 1
        self.store(key, position)
        return key

    def move(self, key: int, position: Position) -> None:
        """Changes a position that need not be stored: whoever reads the stored one comes to the same."""
        self._positions[key] = position

    def store(self, key: int, position: Position) -> None:
        """Changes a position and has it stored."""
        self._positions[key] = position
        if position.finished:
            self._notes.end(key)
        if position.file != (-1, -1):  # a pipe cannot be read again
            self._notes.store(key, positions.dump(position))

    def forget(self, key: int) -> None:
        """As if the log had never been seen."""
        del self._positions[key]
        self._notes.store(key, None)

    def prune(self, busy: Container[int], here: Container[int]) -> None:
        """Forgets the oldest finished logs above the bound.

        Args:
            busy: logs that are open.
            here: logs whose file is still there, and would be read again.
        """
        finished = [key for key, one in self._positions.items() if one.finished and key not in busy]
        for key in finished[: max(0, len(finished) - MOST_KNOWN)]:
            if key not in here:
                self.forget(key)
