"""Replay of request traces that name prefix blocks instead of giving tokens.

The form is Mooncake's (https://github.com/kvcache-ai/Mooncake/tree/main/FAST25-release/traces): one JSON object per
request with `input_length` and `hash_ids`, the chained blocks of 512 tokens, the part-filled last one among them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .requests import Prompt, Request

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .engine import Engine


class TraceError(ValueError):
    """A trace line that cannot be replayed.

    Attributes:
        line: its number, from 1.
    """

    def __init__(self, line: int, got: str, expected: str) -> None:
        self.line = line
        super().__init__(f"trace line {line}: got {got}, expected {expected}")


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """One request of a trace.

    Attributes:
        tokens: length of its prompt.
        blocks: the numbers of its blocks; equal numbers are equal prefixes.
    """

    tokens: int
    blocks: tuple[int, ...]


@dataclass(slots=True)
class Reuse:
    """What a replay found.

    Attributes:
        requests: requests replayed.
        hit_requests: those that found anything.
        blocks: blocks asked for.
        hit_blocks: blocks found.
        tokens: prompt tokens.
        hit_tokens: prompt tokens in found blocks.
    """

    requests: int = 0
    hit_requests: int = 0
    blocks: int = 0
    hit_blocks: int = 0
    tokens: int = 0
    hit_tokens: int = 0


def read_trace(lines: Iterable[str | bytes], block_size: int = 512) -> Iterator[TraceRequest]:
    """The requests of a trace, in its order.

    Raises:
        TraceError: a line that is no such object, or whose blocks do not fit its length.
    """
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            request = TraceRequest(int(row["input_length"]), tuple(map(int, row["hash_ids"])))
        except (ValueError, TypeError, KeyError) as error:
            raise TraceError(number, repr(line[:80]), "an object with input_length and hash_ids") from error
        if len(request.blocks) != -(-request.tokens // block_size):
            raise TraceError(number, f"{len(request.blocks)} blocks for {request.tokens} tokens", "one per block begun")
        yield request


def replay(trace: Iterable[TraceRequest], engine: Engine) -> Reuse:
    """Sends the requests of a trace through an engine, one after the other.

    The trace's last block is part-filled and has a number all the same, so it can be found again. The engine caches
    full blocks only and never reuses a last token. Each prompt is therefore sent as whole blocks and one token more,
    and found tokens are counted up to the prompt's true length: what the trace itself calls reused.
    """
    size = engine.settings.block_size
    reuse = Reuse()
    for number, asked in enumerate(trace):
        prompt = Prompt(len(asked.blocks) * size + 1, asked.blocks, (number,))
        request = Request(str(number), prompt, max_tokens=1)
        engine.submit(request)
        engine.run()
        reuse.requests += 1
        reuse.hit_requests += bool(request.cached)
        reuse.blocks += len(asked.blocks)
        reuse.hit_blocks += request.cached // size
        reuse.tokens += asked.tokens
        reuse.hit_tokens += min(request.cached, asked.tokens)
    return reuse
