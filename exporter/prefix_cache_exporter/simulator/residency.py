"""How long blocks live, lie idle and wait for their next use: what `--kv-cache-metrics` samples.

https://github.com/vllm-project/vllm/blob/v0.12.0/vllm/v1/core/kv_cache_metrics.py
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_REMEMBERED_USES = 4


@dataclass(slots=True)
class _Life:
    born: float
    used: float
    uses: deque[float] = field(default_factory=lambda: deque(maxlen=_REMEMBERED_USES))


@dataclass(frozen=True, slots=True)
class Eviction:
    """The end of a sampled block.

    Attributes:
        lifetime: seconds since it was allocated.
        idle: seconds since it was last used.
        gaps: seconds between its last uses.
    """

    lifetime: float
    idle: float
    gaps: tuple[float, ...]


class Residency:
    """Follows a sample of the blocks.

    Args:
        sample: share of allocations that are followed, above 0 and up to 1.
        tell: takes what there is to say of a followed block when it is handed out anew.
        seed: of the sample.

    Attributes:
        now: the time of what happens next, in seconds.
    """

    def __init__(self, sample: float, tell: Callable[[Eviction], None], seed: int = 0) -> None:
        self.now = 0.0
        self._sample, self._tell = sample, tell
        self._chance = random.Random(seed)  # noqa: S311  # a sample, not a secret
        self._lives: dict[int, _Life] = {}

    def allocated(self, block: int) -> None:
        """A block is handed out; whatever it was before ends here."""
        life = self._lives.pop(block, None)
        if life is not None:
            gaps = tuple(later - earlier for earlier, later in pairwise(life.uses))
            self._tell(Eviction(self.now - life.born, self.now - life.used, gaps))
        if self._chance.random() < self._sample:
            self._lives[block] = _Life(self.now, self.now)

    def used(self, block: int) -> None:
        """A cached block is hit."""
        life = self._lives.get(block)
        if life is not None:
            life.used = self.now
            life.uses.append(self.now)

    def forget(self) -> None:
        """The cache is reset: nothing that is followed will be told."""
        self._lives.clear()
