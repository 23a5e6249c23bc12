"""Blocks per second through the engine simulator: named blocks of a trace, and blocks hashed from tokens."""

from __future__ import annotations

import random
import time
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.figure import Figure
from prefix_cache_exporter.simulator.engine import Engine
from prefix_cache_exporter.simulator.requests import Prompt, Request
from prefix_cache_exporter.simulator.rules import Rules
from prefix_cache_exporter.simulator.terms import Settings
from prefix_cache_exporter.simulator.trace import TraceRequest, replay

if TYPE_CHECKING:
    from collections.abc import Iterator

SLOWEST = 200_000
"""Blocks per second of CPU time: neighbours on the machine do not count."""
_SEED = 20_261_129
_RELEASE = "0.32.0"
_LONG = 1 << 20


def figures(*, quick: bool) -> Iterator[Figure]:
    """A trace through a cache that keeps everything and one that evicts, and prompts that are hashed first."""
    trace = _conversations(200 if quick else 8_000)
    prompts = _prompts(20 if quick else 1_000)
    for what, work in (
        ("trace, cache without limit", partial(_replayed, trace, None)),
        ("trace, 20,000 blocks, evicting", partial(_replayed, trace, 20_000)),
        ("tokens hashed in blocks of 16, evicting", partial(_sent, prompts)),
    ):
        began = time.process_time()
        blocks = work()
        rate = blocks / (time.process_time() - began)
        yield Figure("simulator", what, rate, "blocks/s CPU", SLOWEST, at_least=True)


def _conversations(requests: int) -> list[TraceRequest]:
    """Requests that go on where an earlier one ended, or begin anew behind a common first block."""
    chance = random.Random(_SEED)
    numbers = iter(range(1, _LONG))
    open_ones: list[tuple[int, ...]] = []
    trace = []
    for _ in range(requests):
        before = chance.choice(open_ones) if open_ones and chance.random() < 0.6 else (0,)
        blocks = (*before, *(next(numbers) for _ in range(chance.randint(1, 40))))
        open_ones = [*open_ones[-200:], blocks]
        trace.append(TraceRequest(len(blocks) * 512, blocks))
    return trace


def _replayed(trace: list[TraceRequest], blocks: int | None) -> int:
    settings = Settings(block_size=512, blocks=blocks, max_model_len=_LONG, max_batched_tokens=_LONG)
    return replay(trace, Engine(settings, Rules.of(_RELEASE))).blocks


def _prompts(requests: int) -> list[list[int]]:
    chance = random.Random(_SEED)
    shared = [chance.randrange(100_000) for _ in range(2_000)]
    return [shared + [chance.randrange(100_000) for _ in range(1_200)] for _ in range(requests)]


def _sent(prompts: list[list[int]]) -> int:
    engine = Engine(Settings(block_size=16, blocks=20_000, max_batched_tokens=8_192), Rules.of(_RELEASE))
    blocks = 0
    for number, tokens in enumerate(prompts):
        prompt = Prompt.of(tokens, 16)
        engine.submit(Request(str(number), prompt, max_tokens=1))
        engine.run()
        blocks += len(prompt.hashes)
    return blocks
