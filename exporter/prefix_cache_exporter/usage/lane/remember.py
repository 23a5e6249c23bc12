"""A memory of ids for whole blocks of lines: as quick as a set, and durable without any id in the state file.

While the process lives, ids are told apart by the interpreter's own 64-bit hashes. What outlives it are keyed hashes,
made only when state is written and only of ids that are still remembered then: catching up on a long log, most are not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.usage.normaliser import KEY_BYTES, digester

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from hashlib import blake2b

_SEGMENT = 4096
_KIND = "ids"


class Durable:
    """Remembers the last `bound` ids, or up to twice as many; stores them, or up to three segments more.

    Args:
        bound: how many.
        key: keys the hashes that are stored.
        saved: stored parts by name; those of others are passed over.
    """

    hashes = False

    def __init__(self, bound: int, key: bytes = b"", saved: Mapping[str, bytes] | None = None) -> None:
        self._bound, self._digest = bound, digester(key)
        self._earlier: dict[int, list[bytes]] = {}
        for name, content in (saved or {}).items():
            kind, _, number = name.partition("/")
            if kind == _KIND and number.isdecimal():
                self._earlier[int(number)] = [content[at : at + KEY_BYTES] for at in range(0, len(content), KEY_BYTES)]
        self._known = {one for some in self._earlier.values() for one in some}
        self._number = max(self._earlier, default=0) + 1
        self._earlier = dict(sorted(self._earlier.items()))
        # Two generations: whole sets are let go instead of one hash at a time, which would cost as much as adding it.
        self._young: set[int] = set()
        self._old: set[int] = set()
        self._segments: dict[int, list[str]] = {self._number: []}
        self._changed: set[int] = set()

    def add(self, one: str) -> bool:
        """Remembers an id; whether it is new."""
        number = hash(one)
        if number in self._young or number in self._old:
            return False
        if self._known and self._digest(one.encode()).digest() in self._known:
            return False
        self._young.add(number)
        self._append([one])
        return True

    def add_all(self, ids: Sequence[str]) -> bool:
        """Remembers ids that are all new and all different, or none of them; whether they were."""
        numbers, young = list(map(hash, ids)), self._young
        if not young.isdisjoint(numbers) or not self._old.isdisjoint(numbers):
            return False
        if self._known:
            digest = self._digest
            if not self._known.isdisjoint([digest(one.encode()).digest() for one in ids]):
                return False
        before = len(young)
        young.update(numbers)
        if len(young) - before < len(numbers):  # one stood twice; none stood here before
            young.difference_update(numbers)
            return False
        self._append(ids)
        return True

    def drop(self, ids: Sequence[str]) -> None:
        """Forgets ids that were added last."""
        left = set(ids)
        for generation in (self._young, self._old):
            generation.difference_update(map(hash, left))
        for number in sorted(self._segments, reverse=True):
            if not left:
                break
            segment = self._segments[number]
            found = left.intersection(segment)
            if found:
                segment[:] = [one for one in segment if one not in found]
                left -= found

    def changes(self) -> dict[str, Callable[[], bytes] | None]:
        """What to store by name; each makes its bytes when they are written. None for what was forgotten."""
        changed: dict[str, Callable[[], bytes] | None] = {}
        for number in sorted(self._changed):
            segment = self._segments.get(number)
            changed[f"{_KIND}/{number}"] = None if segment is None else _Later(self._digest, segment)
        self._changed.clear()
        return changed

    def _append(self, ids: Sequence[str]) -> None:
        at = 0
        while at < len(ids):
            segment = self._segments[self._number]
            room = _SEGMENT - len(segment)
            segment += ids[at : at + room]
            at += room
            self._changed.add(self._number)
            if len(segment) >= _SEGMENT:
                self._turn()

    def _turn(self) -> None:
        self._number += 1
        self._segments[self._number] = []
        if len(self._young) >= self._bound:
            self._old, self._young = self._young, set()
        stored = sum(map(len, self._earlier.values())) + sum(map(len, self._segments.values()))
        while True:
            oldest = next(iter(self._earlier or self._segments))
            stored -= len(self._earlier.get(oldest, ())) + len(self._segments.get(oldest, ()))
            if stored < self._bound:
                return
            self._known.difference_update(self._earlier.pop(oldest, ()))
            self._segments.pop(oldest, None)
            self._changed.add(oldest)


class _Later:
    """The hashes of the ids that a segment holds now, made when they are asked for: segments only grow behind them."""

    __slots__ = ("_digest", "_ids", "_length")

    def __init__(self, digest: Callable[[bytes], blake2b], ids: list[str]) -> None:
        self._digest, self._ids, self._length = digest, ids, len(ids)

    def __call__(self) -> bytes:
        digest = self._digest
        return b"".join([digest(one.encode()).digest() for one in self._ids[: self._length]])
