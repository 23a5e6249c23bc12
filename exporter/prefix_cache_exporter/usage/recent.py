"""Memories of ids for whole blocks of lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Memory(Protocol):
    """Remembers ids of records."""

    def keys(self, ids: Iterable[str]) -> list[Any]:
        """What stands for ids here."""

    def add(self, key: Any) -> bool:
        """Remembers an id; whether it is new."""

    def add_all(self, keys: Sequence[Any]) -> bool:
        """Remembers ids that are all new and all different, or none of them; whether they were."""

    def drop(self, keys: Sequence[Any]) -> None:
        """Forgets ids that were added last."""


class Recent:
    """Ids seen lately, as 64-bit hashes: at least the last `bound`, at most twice as many."""

    def __init__(self, bound: int) -> None:
        self._bound = max(bound, 1)
        self._new: set[int] = set()
        self._old: set[int] = set()

    @staticmethod
    def keys(ids: Iterable[str]) -> list[int]:
        """What stands for ids here."""
        return list(map(hash, ids))

    def add(self, number: int) -> bool:
        """Remembers an id; whether it is new."""
        if number in self._new or number in self._old:
            return False
        self._new.add(number)
        self._turn()
        return True

    def add_all(self, numbers: Sequence[int]) -> bool:
        """Remembers ids that are all new and all different, or none of them; whether they were."""
        new = self._new
        if not new.isdisjoint(numbers) or not self._old.isdisjoint(numbers):
            return False
        before = len(new)
        new.update(numbers)
        if len(new) - before < len(numbers):  # one stood twice; none stood here before
            new.difference_update(numbers)
            return False
        self._turn()
        return True

    def drop(self, numbers: Iterable[int]) -> None:
        """Forgets ids."""
        self._new.difference_update(numbers)
        self._old.difference_update(numbers)

    def _turn(self) -> None:
        if len(self._new) >= self._bound:
            self._old, self._new = self._new, set()
