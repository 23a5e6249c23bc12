"""Memories of ids for whole blocks of lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_WARY = 64
"""Blocks that are looked at line by line after one had repeats."""


class Memory(Protocol):
    """Remembers ids of records by what stands for them."""

    @property
    def hashes(self) -> bool:
        """Whether the interpreter's own hash stands for an id; else it stands for itself."""

    def add(self, key: Any) -> bool:
        """Remembers an id; whether it is new."""

    def add_all(self, keys: Sequence[Any]) -> bool:
        """Remembers ids that are all new and all different, or none of them; whether they were."""

    def drop(self, keys: Sequence[Any]) -> None:
        """Forgets ids that were added last."""


class Recent:
    """Ids seen lately, as 64-bit hashes: at least the last `bound`, at most three times as many and a block."""

    hashes = True

    def __init__(self, bound: int) -> None:
        self._bound = max(bound, 1)
        self._seen: set[int] = set()
        self._order: list[int] = []
        self._wary = 0

    def add(self, key: int) -> bool:
        """Remembers an id; whether it is new."""
        if key in self._seen:
            return False
        self._seen.add(key)
        self._order.append(key)
        self._turn()
        return True

    def add_all(self, keys: Sequence[int]) -> bool:
        """Remembers ids that are all new and all different, or none of them; whether they were."""
        seen = self._seen
        if self._wary:
            self._wary -= 1
            if not seen.isdisjoint(keys):
                self._wary = _WARY
                return False
        before = len(seen)
        seen.update(keys)  # asking for each first would cost as much again
        if len(seen) - before < len(keys):
            seen.difference_update(set(keys).difference(self._order))
            self._wary = _WARY
            return False
        self._order += keys
        self._turn()
        return True

    def drop(self, keys: Iterable[int]) -> None:
        """Forgets ids that were added last."""
        dropped, order = set(keys), self._order
        self._seen -= dropped
        at = len(order)
        while dropped and at:
            at -= 1
            if order[at] in dropped:
                dropped.remove(order[at])
                del order[at]

    def _turn(self) -> None:
        if len(self._order) >= 3 * self._bound:
            self._order = self._order[-self._bound :]
            self._seen = set(self._order)
