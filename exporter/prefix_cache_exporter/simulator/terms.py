"""What the parts of the simulated engine have in common: its sizes, its counters, a step, and who hears of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .requests import Request
    from .residency import Eviction


@dataclass(frozen=True, slots=True)
class Settings:
    """What an engine is started with.

    Attributes:
        block_size: tokens in a KV block.
        blocks: KV blocks, the one that is never handed out included; None for a cache without limit.
        max_model_len: longest sequence in tokens, prompt and generated.
        max_batched_tokens: tokens computed in one step; longer prompts are computed in chunks.
        max_running: requests computed side by side.
        residency_sample: share of blocks whose lives are sampled, as `--kv-cache-metrics` does; None where it is off.
        block_size_set, blocks_overridden: whether these were given on the command line; the page tells.
    """

    block_size: int = 16
    blocks: int | None = 8192
    max_model_len: int = 32768
    max_batched_tokens: int = 2048
    max_running: int = 128
    residency_sample: float | None = None
    block_size_set: bool = False
    blocks_overridden: bool = False


@dataclass(slots=True)
class Counts:
    """What the engine has counted since it started; tokens unless said otherwise.

    Attributes:
        prompt: prompt tokens of requests that gave a first token.
        cached: those of them that were not computed.
        generated: tokens that reached a client who was still there.
        lookup: tokens looked up in the cache, as the release counts lookups.
        lookup_hit: those of them that were found.
        preemptions: preemptions that the front end has heard of (requests).
        steps: steps that gave any output (steps).
        finished: requests that generated all their tokens (requests).
    """

    prompt: int = 0
    cached: int = 0
    generated: int = 0
    lookup: int = 0
    lookup_hit: int = 0
    preemptions: int = 0
    steps: int = 0
    finished: int = 0


class Observer(Protocol):
    """Hears of what histograms are made of."""

    def first_token(self, request: Request, seconds: float) -> None:
        """A request gave its first token so long after it arrived."""

    def next_token(self, seconds: float) -> None:
        """Another token came so long after the one before."""

    def step(self, tokens: int) -> None:
        """A step gave output; it stands for so many prompt and generated tokens."""

    def finished(self, request: Request, now: float) -> None:
        """A request generated all its tokens."""

    def evicted(self, eviction: Eviction) -> None:
        """A sampled block was handed out anew."""


@dataclass(slots=True)
class Plan:
    """What one step computes.

    Attributes:
        tokens: tokens to compute for each request, in scheduling order.
        preempted: requests that lost their blocks in this step.
    """

    tokens: dict[Request, int] = field(default_factory=dict)
    preempted: list[Request] = field(default_factory=list)


class TooLongError(ValueError):
    """A request that the engine's front end refuses.

    Attributes:
        tokens: length of the prompt.
        most: longest prompt that leaves room for one token.
    """

    def __init__(self, tokens: int, most: int) -> None:
        self.tokens, self.most = tokens, most
        super().__init__(f"prompt: got {tokens} tokens, expected at most {most}")
