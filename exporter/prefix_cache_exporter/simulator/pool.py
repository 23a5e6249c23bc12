"""KV blocks: one pool for cached prefixes and running requests, with least-recently-used eviction.

A freed block keeps its content and its hash until it is needed for something else, so "free" and "cached" are the same
blocks (https://docs.vllm.ai/en/v0.12.0/design/prefix_caching/).
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import takewhile
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .residency import Residency

Hash = bytes | int
"""What blocks are told apart by: chained hashes, or the block numbers of a trace."""


class BlockPool:
    """The blocks of one engine.

    Block 0 is never handed out: engines keep it as the placeholder of layers that need no block.

    Args:
        blocks: how many there are, block 0 included; None for a cache without limit.
        unhashed_first: freed blocks without a hash are reused at once, last freed first; otherwise they queue like
            all others.
        residency: told of the blocks' lives, where they are sampled.

    Attributes:
        evictions: cached blocks given up for others so far.
    """

    def __init__(self, blocks: int | None, *, unhashed_first: bool, residency: Residency | None = None) -> None:
        self._size = blocks
        self._residency = residency
        self._unhashed_first = unhashed_first
        self._references = [1]
        self._hashes: list[Hash | None] = [None]
        self._cached: dict[Hash, int] = {}
        # Equal blocks computed side by side are kept apart; the eldest answers lookups, the others stand by.
        self._twins: dict[Hash, list[int]] = {}
        # The order of reuse: blocks that can never be hit, then blocks never used (`_references` grows by them),
        # then freed blocks, longest unused first.
        self._worthless: list[int] = []
        self._freed: OrderedDict[int, None] = OrderedDict()
        self.evictions = 0

    @property
    def free(self) -> int | None:
        """Blocks that nobody holds, cached or not; None without limit."""
        if self._size is None:
            return None
        return self._size - len(self._references) + len(self._worthless) + len(self._freed)

    @property
    def usage(self) -> float:
        """The share of blocks held by requests, as the engine reports it: cached blocks that nobody holds are free."""
        if self._size is None or self._size == 1:
            return 0.0
        return 1.0 - (self.free or 0) / (self._size - 1)

    def find(self, hashes: Sequence[Hash], most: int) -> list[int]:
        """The cached blocks of the longest known beginning of `hashes`, at most so many."""
        get = self._cached.get
        return cast("list[int]", list(takewhile(bool, map(get, hashes[:most]))))

    def idle(self, blocks: Iterable[int]) -> int:
        """How many of these blocks nobody holds: holding them takes them from the free ones."""
        references = self._references
        return sum(1 for block in blocks if not references[block])

    def hold(self, blocks: Iterable[int]) -> None:
        """Takes part in cached blocks, so that they are not evicted."""
        references = self._references
        for block in blocks:
            if not references[block]:
                del self._freed[block]
            references[block] += 1
            if self._residency:
                self._residency.used(block)

    def allocate(self, count: int) -> list[int]:
        """Hands out blocks, evicting what was longest unused; the caller has looked at `free`."""
        blocks = []
        for _ in range(count):
            if self._worthless:
                block = self._worthless.pop()
            elif self._size is None or len(self._references) < self._size:
                block = len(self._references)
                self._references.append(0)
                self._hashes.append(None)
            else:
                block, _none = self._freed.popitem(last=False)
                self._forget(block)
            self._references[block] = 1
            blocks.append(block)
            if self._residency:
                self._residency.allocated(block)
        return blocks

    def publish(self, blocks: Iterable[int], hashes: Iterable[Hash]) -> None:
        """Makes full blocks findable under their hashes."""
        cached, names = self._cached, self._hashes
        for block, name in zip(blocks, hashes, strict=True):
            names[block] = name
            if cached.setdefault(name, block) != block:
                self._twins.setdefault(name, []).append(block)

    def release(self, blocks: Sequence[int]) -> None:
        """Lets go of a request's blocks, its last block first: a tail is worth less than the beginning it hangs on."""
        worthless = []
        references, hashes, freed = self._references, self._hashes, self._freed
        for block in reversed(blocks):
            references[block] -= 1
            if references[block]:
                continue
            if self._unhashed_first and hashes[block] is None:
                worthless.append(block)
            else:
                freed[block] = None
        self._worthless += reversed(worthless)

    def reset(self) -> bool:
        """Forgets every hash; refused, as engines do, while requests hold blocks."""
        held = any(self._references[1:]) if self._size is None else self.free != self._size - 1
        if held:
            return False
        self._hashes = [None] * len(self._hashes)
        self._cached.clear()
        self._twins.clear()
        if self._residency:
            self._residency.forget()
        return True

    def _forget(self, block: int) -> None:
        name, self._hashes[block] = self._hashes[block], None
        if name is None:
            return
        self.evictions += 1
        twins = self._twins.get(name)
        if twins is None:
            del self._cached[name]
            return
        if self._cached[name] == block:
            self._cached[name] = twins.pop(0)
        else:
            twins.remove(block)
        if not twins:
            del self._twins[name]
