from __future__ import annotations

import json

import pytest

from prefix_cache_exporter.simulator.engine import Engine
from prefix_cache_exporter.simulator.requests import Family, Prompt, Request
from prefix_cache_exporter.simulator.rules import Rules
from prefix_cache_exporter.simulator.terms import Settings
from prefix_cache_exporter.simulator.usage import Origin, UsageLog, leading_fingerprint, usage_line, usage_of

SETTINGS = Settings(block_size=16, blocks=64)
PROMPT = Prompt.of(range(100), 16)


def finished(version: str = "0.32.0", *, times: int = 1, n: int = 1) -> list[Request]:
    """The sequences of the last of some equal requests."""
    engine = Engine(SETTINGS, Rules.of(version))
    sequences: list[Request] = []
    for number in range(times):
        family = Family(n, n)
        sequences = [Request(f"{number}", PROMPT, 4, sampling=child, family=family) for child in range(n)]
        for sequence in sequences:
            engine.submit(sequence, now=1_800_000_000.0)
        while engine.busy:
            plan = engine.schedule(1_800_000_000.25)
            engine.complete(plan, 1_800_000_000.5)
    return sequences


@pytest.mark.parametrize(
    ("version", "times", "details"),
    [
        ("0.12.0", 1, None),
        ("0.12.0", 2, {"cached_tokens": 96}),
        ("0.24.0", 1, {"cached_tokens": 0}),
        ("0.28.0", 1, {"cached_tokens": 0, "created_cache_tokens": 96}),
        ("0.28.0", 2, {"cached_tokens": 96, "created_cache_tokens": 0}),
    ],
)
def test_what_releases_say_of_cached_tokens(version, times, details):
    assert usage_of(finished(version, times=times), Rules.of(version)) == {
        "prompt_tokens": 100,
        "total_tokens": 104,
        "completion_tokens": 4,
        "prompt_tokens_details": details,
    }


def test_several_completions_count_their_prompt_once():
    usage = usage_of(finished(n=2), Rules.of("0.32.0"))

    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (100, 8)
    assert usage["prompt_tokens_details"]["cached_tokens"] == 96  # the second found what the first computes


def test_a_line_of_the_log_can_be_read_back(tmp_path):
    family = finished()
    usage = usage_of(family, Rules.of("0.32.0"))
    origin = Origin("support", "r41", "payments", leading_fingerprint="0f3a")
    line = usage_line(family, usage, origin, "org/model", 1_800_000_001.5)
    with UsageLog(tmp_path / "usage.jsonl") as log:
        log.write(line)
        log.write(line)

    lines = (tmp_path / "usage.jsonl").read_bytes().splitlines()
    assert len(lines) == 2
    assert json.loads(lines[1]) == {
        "id": "chatcmpl-0",
        "object": "chat.completion",
        "created": 1_800_000_000,
        "time": "2027-01-15T08:00:01.500Z",
        "status": "success",
        "model": "org/model",
        "usage": usage,
        "ttft_seconds": 0.5,
        "duration_seconds": 1.5,
        "metadata": {
            "template": "support",
            "template_revision": "r41",
            "namespace": "payments",
            "task": "chat",
            "leading_fingerprint": "0f3a",
        },
    }


def test_a_leading_fingerprint_sees_the_first_block_only():
    plain = list(range(40))

    assert leading_fingerprint(plain, 16) == leading_fingerprint([*plain[:16], 7, 7, 7], 16)
    assert leading_fingerprint(plain, 16) != leading_fingerprint([7, *plain], 16)
    assert len(leading_fingerprint([1, 2], 16)) == 16
