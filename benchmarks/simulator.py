"""Blocks per second through the engine simulator: named blocks of a trace, and blocks hashed from tokens."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.figure import Figure
from prefix_cache_exporter.simulator.engine import Engine, Settings
from prefix_cache_exporter.simulator.requests import Prompt, Request
from prefix_cache_exporter.simulator.rules import Rules
from prefix_cache_exporter.simulator.trace import TraceRequest, replay

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PROMISED = 200_000
"""Blocks per second."""
_SEED = 20_261_129
_RELEASE = "0.32.0"
_LONG = 1 << 20


@dataclass(frozen=True, slots=True)
class Measured:
    name: str
    blocks: int
    seconds: float

    @property
    def rate(self) -> float:
        return self.blocks / self.seconds


def conversations(requests: int = 8_000) -> list[TraceRequest]:
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


def figures(*, quick: bool) -> Iterator[Figure]:
    """What `python -m benchmarks` shows of it."""
    for measured in measure(quick=quick):
        yield Figure("simulator", measured.name, measured.rate, "blocks/s", PROMISED, at_least=True)


def measure(*, quick: bool = False) -> list[Measured]:
    trace = conversations(200 if quick else 8_000)
    prompts = _prompts(20 if quick else 1_000)
    return [
        _timed("trace, cache without limit", lambda: _replayed(trace, None)),
        _timed("trace, 20,000 blocks, evicting", lambda: _replayed(trace, 20_000)),
        _timed("tokens hashed, blocks of 16, evicting", lambda: _sent(prompts)),
    ]


def _timed(name: str, work: Callable[[], int]) -> Measured:
    began = time.perf_counter()
    blocks = work()
    return Measured(name, blocks, time.perf_counter() - began)


def _replayed(trace: list[TraceRequest], blocks: int | None) -> int:
    settings = Settings(block_size=512, blocks=blocks, max_model_len=_LONG, max_batched_tokens=_LONG)
    return replay(trace, Engine(settings, Rules.of(_RELEASE))).blocks


def _prompts(requests: int = 1_000) -> list[list[int]]:
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


def main() -> None:
    for measured in measure():
        verdict = "kept" if measured.rate >= PROMISED else "MISSED"
        print(f"simulator: {measured.name}: {measured.rate:,.0f} blocks/s (promised {PROMISED:,}: {verdict})")


if __name__ == "__main__":
    main()
