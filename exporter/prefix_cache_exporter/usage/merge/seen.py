"""A bounded memory of settled requests, which survives a kill without writing all of itself each time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_SEGMENT = 4096


class Seen:
    """The last `bound` keys and up to two segments more, oldest forgotten first; keys are hashes of one length.

    It is kept in numbered segments, of which only the newest changes.
    """

    def __init__(self, bound: int, key_bytes: int) -> None:
        self._bound = bound
        self._key_bytes = key_bytes
        self._keys: set[bytes] = set()
        self._segments: dict[int, list[bytes]] = {0: []}
        self._newest: list[bytes] = self._segments[0]
        self._changed: set[int] = set()
        self._number = 0

    def __contains__(self, key: bytes) -> bool:
        return key in self._keys

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, key: bytes) -> bool:
        """Remembers a key; whether it is new."""
        keys = self._keys
        before = len(keys)
        keys.add(key)
        if len(keys) == before:
            return False
        self._newest.append(key)
        self._changed.add(self._number)
        if len(self._newest) >= _SEGMENT:
            self._turn()
        return True

    @property
    def keys(self) -> set[bytes]:
        """The keys themselves. Whoever adds one says so to `added` before anything else happens."""
        return self._keys

    def added(self, keys: list[bytes]) -> None:
        """Takes note of new keys that stand in `keys` already, in order."""
        while keys:
            room = _SEGMENT - len(self._newest)
            self._newest += keys[:room]
            keys = keys[room:]
            self._changed.add(self._number)
            if len(self._newest) >= _SEGMENT:
                self._turn()

    def _turn(self) -> None:
        self._number += 1
        self._newest = self._segments[self._number] = []
        while (
            len(self._keys) - len(self._segments[oldest := min(self._segments)]) >= self._bound
            and oldest != self._number
        ):
            self._keys.difference_update(self._segments.pop(oldest))
            self._changed.add(oldest)

    def changes(self) -> dict[str, bytes | None]:
        """Segments that changed since the last call, by name; None for one that was forgotten."""
        changed = {
            f"seen/{number}": b"".join(self._segments[number]) if number in self._segments else None
            for number in sorted(self._changed)
        }
        self._changed.clear()
        return changed

    def load(self, parts: Mapping[str, bytes]) -> None:
        """Takes up what `changes` gave, all segments of it."""
        for name, content in parts.items():
            kind, _, number = name.partition("/")
            if kind == "seen" and number.isdecimal():
                size = self._key_bytes
                self._segments[int(number)] = [
                    content[at : at + size] for at in range(0, len(content) - size + 1, size)
                ]
        self._keys = {key for segment in self._segments.values() for key in segment}
        self._number = max(self._segments)
        self._newest = self._segments[self._number]
        if len(self._newest) >= _SEGMENT:
            self._turn()
