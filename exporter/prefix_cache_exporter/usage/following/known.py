"""Every log that was ever seen, by a number of its own, and where reading stands in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from prefix_cache_exporter.usage import positions

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Mapping

    from prefix_cache_exporter.usage.files import File, Name
    from prefix_cache_exporter.usage.positions import Position

    from .batches import Notes

_Of = TypeVar("_Of")
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
        self._positions: dict[int, Position] = {}
        self._by_file: dict[File, set[int]] = {}
        self._by_name: dict[bytes, set[int]] = {}
        for key, position in sorted(found.items()):
            self.move(key, position)
        self._next = max(found, default=0) + 1
        self._notes = notes
        self.places = {one.place for one in found.values()}

    def __getitem__(self, key: int) -> Position:
        return self._positions[key]

    @property
    def read_at(self) -> int | None:
        """When the log that was written to last of those that were read was; nanoseconds since 1970."""
        return max((one.stamp[1] for one in self._positions.values()), default=None)

    def unfinished(self) -> list[int]:
        """Logs of which more may come."""
        return [key for key, one in self._positions.items() if not one.finished]

    def files(self) -> Collection[File]:
        """The files that logs were last read from."""
        return self._by_file.keys()

    def of_file(self, file: File, busy: Container[int]) -> int | None:
        """The log that was last read from a file, none of the `busy` ones."""
        return max((key for key in self._by_file.get(file, ()) if key not in busy), default=None)

    def related(self, file: File, name: Name) -> list[tuple[int, Position]]:
        """Logs that were read from a file or are akin to a name, the one that was seen last at the front."""
        found = set(self._by_file.get(file, ()))
        for part in name:
            found |= self._by_name.get(part, set())
        return [(key, self._positions[key]) for key in sorted(found, reverse=True)]

    def add(self, position: Position, number: int | None = None) -> int:
        """Takes in a log that was never seen, and gives its number.

        Args:
            position: where its reading stands.
            number: one that it should have if no other log has it: what is known of its lines goes by it.
        """
        key = self._next if number is None or number in self._positions else number
        self._next = max(self._next, key + 1)
        self.store(key, position)
        return key

    def move(self, key: int, position: Position) -> None:
        """Changes a position that need not be stored: whoever reads the stored one comes to the same."""
        old = self._positions.get(key)
        if old is None or old.file != position.file:
            self._drop(key)
            self._by_file.setdefault(position.file, set()).add(key)
            for part in (position.family, position.place):
                self._by_name.setdefault(part, set()).add(key)
        self._positions[key] = position

    def store(self, key: int, position: Position) -> None:
        """Changes a position and has it stored."""
        self.move(key, position)
        if position.finished:
            self._notes.end(key)
        if position.file != (-1, -1):  # a pipe cannot be read again
            self._notes.store(key, positions.dump(position))

    def forget(self, key: int) -> None:
        """As if the log had never been seen."""
        self._drop(key)
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

    def _drop(self, key: int) -> None:
        """Takes a log out of the indexes; its names stay what they were, its file does not."""
        position = self._positions.get(key)
        if position is not None:
            _discard(self._by_file, position.file, key)
            for part in (position.family, position.place):
                _discard(self._by_name, part, key)


def _discard(index: dict[_Of, set[int]], of: _Of, key: int) -> None:
    keys = index.get(of)
    if keys is not None:
        keys.discard(key)
        if not keys:
            del index[of]
