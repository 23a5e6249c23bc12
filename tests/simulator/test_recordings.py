"""The model against real servers: every recorded increase and every answered `usage`, step by step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from prefix_cache_exporter.simulator.rules import Rules
from prefix_cache_exporter.simulator.usage import usage_of
from prefix_cache_exporter.tokens.blocks import reusable_tokens, shared_tokens
from support.tiny_model import chat
from support.vllm_replay import RECORDINGS, Replay
from support.vllm_script import CHAT, words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.vllm_script import Call

PAGES = Path(__file__).parents[1] / "pages"
EXPECTED = json.loads((PAGES / "expected.json").read_text("utf-8"))
NOT_GENERATING = ("/tokenize", "/reset_prefix_cache")


def recorded_requests(name: str) -> dict[str, list[dict]]:
    recorded = json.loads((PAGES / name / "steps.json").read_text("utf-8"))
    return {
        step["step"]: [request for request in step["requests"] if request["path"] not in NOT_GENERATING]
        for step in recorded["steps"]
    }


def prompt_tokens(request: dict) -> int | None:
    usage = request.get("usage")
    if not usage:
        return request.get("prompt_tokens")
    if request["path"] == "/v1/messages":  # its input tokens leave out what was read from and written to the cache
        return sum(usage.get(f"{kind}input_tokens") or 0 for kind in ("", "cache_read_", "cache_creation_"))
    return usage.get("prompt_tokens", usage.get("input_tokens"))


def calls(name: str) -> Iterator[tuple[Call, dict]]:
    requests = recorded_requests(name)
    for step in RECORDINGS[name].steps:
        yield from zip(step.calls, requests[step.name], strict=True)


def known(usage: dict) -> dict:
    """A usage object without what only some endpoints and streams say, and what they say nothing in."""
    details = usage.get("prompt_tokens_details")
    return {
        "prompt_tokens": usage["prompt_tokens"],
        "total_tokens": usage["total_tokens"],
        "completion_tokens": usage["completion_tokens"],
        "prompt_tokens_details": details and {key: value for key, value in details.items() if value is not None},
    }


@pytest.mark.parametrize("name", RECORDINGS)
def test_every_recorded_increase_is_predicted(name):
    cached = Rules.of(RECORDINGS[name].version).cached_measure

    assert {
        ran.step: {
            "prompt_tokens": ran.increases["prompt"],
            "generation_tokens": ran.increases["generated"],
            "preemptions": ran.increases["preemptions"],
            "lookup_tokens": ran.increases["lookup"],
            "lookup_hit_tokens": ran.increases["lookup_hit"],
            "cached_prompt_tokens": ran.increases["lookup_hit" if cached == "lookup_hits" else "cached"],
        }
        for ran in Replay(RECORDINGS[name]).run()
    } == EXPECTED[name]


@pytest.mark.parametrize("name", RECORDINGS)
def test_every_answered_usage_is_predicted(name):
    rules, requests = Rules.of(RECORDINGS[name].version), recorded_requests(name)
    pairs = [
        (known(usage_of(family, rules)), known(request["usage"]))
        for ran in Replay(RECORDINGS[name]).run()
        for family, request in zip(ran.families, requests[ran.step], strict=True)
        if request["usage"] and request["path"] == CHAT
    ]

    assert [predicted for predicted, _ in pairs] == [answered for _, answered in pairs]
    assert pairs


@pytest.mark.parametrize("name", RECORDINGS)
def test_every_prompt_has_the_recorded_length(name):
    lengths = [
        (sum(map(len, call.prompts)), recorded)
        for call, request in calls(name)
        if (recorded := prompt_tokens(request)) is not None
    ]

    assert [length for length, _ in lengths] == [recorded for _, recorded in lengths]


@pytest.mark.parametrize("name", RECORDINGS)
def test_prompts_are_equal_where_the_recorded_ones_are(name):
    pairs = {(request["prompt_sha256"], str(call.prompts)) for call, request in calls(name)}

    assert len(pairs) == len({digest for digest, _ in pairs}) == len({prompt for _, prompt in pairs})


@pytest.mark.parametrize(("change", "shared"), [("early", 7), ("late", 355), ("newuser", 449)])
def test_changed_prompts_share_the_recorded_beginning(change, shared):
    recorded = json.loads((PAGES / "0.32.0" / "steps.json").read_text("utf-8"))["shared_prefix"]
    base = chat(("system", words(0, 180)), ("user", "question one please"))
    other = {
        "early": chat(("system", words(0, 180, {1: "w1999"})), ("user", "question one please")),
        "late": chat(("system", words(0, 180, {150: "w1999"})), ("user", "question one please")),
        "newuser": chat(("system", words(0, 180)), ("user", "a different second question")),
    }[change]

    assert shared_tokens(base, other) == recorded[f"{change}_lcp"] == shared
    assert reusable_tokens(shared, len(other), 128) == recorded[f"{change}_floor"]
