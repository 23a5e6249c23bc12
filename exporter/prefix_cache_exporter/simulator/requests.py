"""What is asked of a simulated engine: prompts cut into blocks, and the state of a request on its way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from prefix_cache_exporter.tokens.blocks import PLAIN, ROOT, Extras, block_hash, chain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .pool import Hash

_VOCABULARY = 1 << 32


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt as a block cache sees it.

    Attributes:
        length: tokens.
        hashes: one for each full block.
        tail: what the part-filled last block holds: tokens, or in a trace the number of that block.
        extras: salt, adapter and media, for blocks that generated tokens fill.
    """

    length: int
    hashes: tuple[Hash, ...]
    tail: tuple[int, ...] = ()
    extras: Extras = PLAIN

    @classmethod
    def of(cls, tokens: Sequence[int], block_size: int, extras: Extras = PLAIN) -> Self:
        """Cuts tokens into blocks."""
        full = len(tokens) // block_size * block_size
        return cls(len(tokens), tuple(chain(tokens, block_size, extras)), tuple(tokens[full:]), extras)


@dataclass(slots=True)
class Family:
    """What `n` completions of one request have in common.

    Attributes:
        n: completions asked for.
        open: those not finished.
        longest: generated tokens of the longest finished one.
    """

    n: int = 1
    open: int = 1
    longest: int = 0


@dataclass(slots=True, eq=False)
class Request:
    """One sequence on its way through an engine.

    Attributes:
        id: unique among the open ones.
        prompt: what is to be computed.
        max_tokens: tokens to generate; the engine does not stop earlier.
        lookup: False where the request must compute its whole prompt (`prompt_logprobs`).
        sampling: requests with equal prompts generate equal tokens where this is equal.
        family: the request that it is one of `n` completions of.
    """

    id: str
    prompt: Prompt
    max_tokens: int
    lookup: bool = True
    sampling: int = 0
    family: Family = field(default_factory=Family)

    # What the engine keeps of it.
    hashes: list[Hash] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)
    published: int = 0
    computed: int = 0
    generated: int = 0
    cached: int = 0
    created: int = 0
    preemptions: int = 0
    untold_preemptions: int = 0
    connected: bool = True
    arrived: float = 0.0
    scheduled: float | None = None
    first_token: float = 0.0
    last_token: float = 0.0

    def __post_init__(self) -> None:
        self.hashes = list(self.prompt.hashes)

    @property
    def tokens(self) -> int:
        """Prompt tokens and tokens generated so far: what a lookup covers."""
        return self.prompt.length + self.generated

    def hash_generated(self, block_size: int) -> None:
        """Hashes the blocks that generated tokens have filled since the last call."""
        prompt = self.prompt
        while self.tokens >= (len(self.hashes) + 1) * block_size:
            index = len(self.hashes)
            start = index * block_size - prompt.length
            inside = list(prompt.tail) if start < 0 else []
            outputs = range(max(start, 0), start + block_size)
            seed = self._seed()
            tokens = inside + [(seed + position) % _VOCABULARY for position in outputs]
            parent = self.hashes[-1] if self.hashes else ROOT
            named = parent if isinstance(parent, bytes) else parent.to_bytes(16)
            self.hashes.append(block_hash(named, tokens, prompt.extras.of_block(index, block_size)))

    def _seed(self) -> int:
        return hash((self.prompt.length, self.prompt.tail, self.sampling)) % _VOCABULARY
