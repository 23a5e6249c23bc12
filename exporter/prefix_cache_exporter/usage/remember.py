"""The memory of settled requests for whole blocks of lines: durable, and shared with the general way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .normaliser import digester

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .seen import Seen


class Durable:
    """Adds and finds ids by the hashes that the merger keeps.

    Args:
        seen: the merger's memory.
        key: keys the hashes.
    """

    def __init__(self, seen: Seen, key: bytes = b"") -> None:
        self._seen, self._digest = seen, digester(key)

    def keys(self, ids: Iterable[str]) -> list[bytes]:
        """Hashes of ids, as `Normaliser.key` makes them."""
        digest = self._digest
        return [digest(one.encode()).digest() for one in ids]

    def add(self, key: bytes) -> bool:
        """Remembers an id; whether it is new."""
        return self._seen.add(key)

    def add_all(self, keys: Sequence[bytes]) -> bool:
        """Remembers ids that are all new and all different, or none of them; whether they were."""
        several, known = set(keys), self._seen.keys
        if len(several) < len(keys) or not several.isdisjoint(known):
            return False
        known |= several
        self._seen.added(list(keys))
        return True

    def drop(self, keys: Sequence[bytes]) -> None:
        """Forgets ids that were added last."""
        self._seen.drop(set(keys))
