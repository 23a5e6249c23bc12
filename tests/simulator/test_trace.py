from __future__ import annotations

import os
from pathlib import Path

import pytest

from prefix_cache_exporter.simulator.engine import Engine
from prefix_cache_exporter.simulator.rules import Rules
from prefix_cache_exporter.simulator.terms import Settings
from prefix_cache_exporter.simulator.trace import Reuse, TraceError, TraceRequest, read_trace, replay

TRACE = """\
{"timestamp": 0, "input_length": 1100, "output_length": 40, "hash_ids": [0, 1, 2]}
{"timestamp": 500, "input_length": 1100, "output_length": 40, "hash_ids": [0, 1, 2]}
{"timestamp": 900, "input_length": 1500, "output_length": 10, "hash_ids": [0, 1, 3]}
{"timestamp": 1200, "input_length": 500, "output_length": 10, "hash_ids": [4]}
{"timestamp": 1300, "input_length": 1100, "output_length": 10, "hash_ids": [0, 1, 2]}
"""
UNLIMITED = Settings(block_size=512, blocks=None, max_model_len=1 << 20, max_batched_tokens=1 << 20)


def engine(settings: Settings = UNLIMITED) -> Engine:
    return Engine(settings, Rules.of("0.32.0"))


def counted_directly(trace: list[TraceRequest]) -> tuple[int, int]:
    """Leading blocks seen before, and the tokens in them."""
    seen: set[int] = set()
    blocks = tokens = 0
    for request in trace:
        known = 0
        while known < len(request.blocks) and request.blocks[known] in seen:
            known += 1
        blocks += known
        tokens += min(known * 512, request.tokens)
        seen.update(request.blocks)
    return blocks, tokens


def test_a_trace_is_replayed_block_by_block():
    trace = list(read_trace(TRACE.splitlines()))

    assert replay(trace, engine()) == Reuse(
        requests=5,
        hit_requests=3,
        blocks=13,
        hit_blocks=3 + 2 + 3,
        tokens=1100 + 1100 + 1500 + 500 + 1100,
        hit_tokens=1100 + 1024 + 1100,
    )
    assert counted_directly(trace) == (8, 3224)


def test_a_small_cache_finds_less():
    small = Settings(block_size=512, blocks=5, max_model_len=1 << 20, max_batched_tokens=1 << 20)

    assert replay(read_trace(TRACE.splitlines()), engine(small)).hit_blocks < 8


@pytest.mark.parametrize("line", ["{", "[1]", '{"input_length": 5}', '{"input_length": "x", "hash_ids": [1]}'])
def test_what_is_no_trace_is_refused(line):
    with pytest.raises(TraceError) as caught:
        list(read_trace([TRACE.splitlines()[0], line]))

    assert str(caught.value) == f"trace line 2: got {line!r}, expected an object with input_length and hash_ids"
    assert caught.value.line == 2


def test_blocks_that_do_not_fit_the_length_are_refused():
    with pytest.raises(TraceError, match="trace line 1: got 1 blocks for 513 tokens, expected one per block begun"):
        list(read_trace(['{"input_length": 513, "hash_ids": [7]}']))


@pytest.mark.skipif("PREFIX_CACHE_TRACE" not in os.environ, reason="PREFIX_CACHE_TRACE names no trace file")
def test_a_public_trace_is_reused_as_a_direct_count_says():
    """With Mooncake's conversation_trace.jsonl: 36.6 % of blocks, 37.36 % of tokens, nearly all requests."""
    with Path(os.environ["PREFIX_CACHE_TRACE"]).open("rb") as lines:
        trace = list(read_trace(lines))

    reuse = replay(trace, engine())

    assert (reuse.hit_blocks, reuse.hit_tokens) == counted_directly(trace)
    assert reuse.blocks == sum(len(request.blocks) for request in trace)
    assert reuse.tokens == sum(request.tokens for request in trace)
