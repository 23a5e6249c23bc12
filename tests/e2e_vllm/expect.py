"""What a step must add to the canonical counters, by its responses' usage objects, and where that is not all there is.

The exceptions are real: the engine counts work whose usage nobody was told, and usage objects leave out what it counts.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

MEASURES = ("prompt_tokens", "cached_prompt_tokens", "lookup_tokens", "generation_tokens")
GENERATING = ("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages")
EXPLICIT_ZERO = (0, 24)
"""Before it, no cached tokens are reported as `prompt_tokens_details: null`, and /v1/messages says nothing of them:
https://github.com/vllm-project/vllm/issues/44824."""

COMPLETIONS_TELL = (0, 10)
"""Before it, usage of /v1/completions has no prompt_tokens_details at all."""
RECOUNTED_BEFORE = (0, 11, 1)
"""Before it, a preempted request is looked up again at every attempt, so that the sidecar excludes the interval:
https://github.com/vllm-project/vllm/pull/25787."""


@dataclass
class Bounds:
    """Between what an increase must lie, ends included."""

    low: int = 0
    high: int = 0

    def add(self, low: int, high: int | None = None) -> None:
        self.low += low
        self.high += low if high is None else high

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def __str__(self) -> str:
        return str(self.low) if self.low == self.high else f"{self.low} to {self.high}"


@dataclass
class Expected:
    """A step's increases, and the exceptions that kept them from being the usage objects' sums."""

    bounds: dict[str, Bounds] = field(default_factory=lambda: {measure: Bounds() for measure in MEASURES})
    usage_sums: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("prompt_tokens", "generation_tokens"), 0))
    exceptions: list[str] = field(default_factory=list)
    withheld: tuple[str, ...] = ()

    def without_sides(self) -> Expected:
        """The same of an engine whose page tells no cached tokens: every prompt token is excluded."""
        names = {"prompt_tokens": "excluded_prompt_tokens", "generation_tokens": "generation_tokens"}
        return Expected(
            {name: self.bounds[measure] for measure, name in names.items()},
            {name: self.usage_sums[measure] for measure, name in names.items()},
            self.exceptions,
            tuple(measure for measure in MEASURES if measure != "generation_tokens"),
        )

    def recounted(self) -> Expected:
        """The same of a step in which an engine that looks preempted requests up again preempted some.

        Prompt tokens are those counted and those excluded together.
        """
        prompt, lookups = self.bounds["prompt_tokens"], self.bounds["lookup_tokens"]
        bounds = {"lookup_tokens": Bounds(lookups.low, sys.maxsize), "cached_prompt_tokens": Bounds(0, prompt.high)}
        why = "preemptions: looked up again, and excluded"
        return Expected(self.bounds | bounds, self.usage_sums, [*self.exceptions, why], self.withheld)

    def differences(self, increases: dict[str, float]) -> list[str]:
        """What does not fit, in words; exceptions that turn out to be none are differences, too."""
        found = [
            f"{measure}: expected {bounds}, got {increases.get(measure)}"
            for measure, bounds in self.bounds.items()
            if increases.get(measure) is None or increases[measure] not in bounds
        ]
        found += [
            f"{measure}: expected none, got {increases[measure]}" for measure in self.withheld if measure in increases
        ]
        for measure, total in self.usage_sums.items():
            if not self.exceptions and increases.get(measure) != total:
                found.append(f"{measure}: usage objects sum to {total}, got {increases.get(measure)}")
        return found


def numbers(version: str) -> tuple[int, ...]:
    """A release, or a recording's name, as numbers."""
    return tuple(int(part) for part in version.partition("-")[0].split(".") if part.isdecimal())


def expected(requests: list[dict[str, Any]], engine_version: str) -> Expected:
    """Expects what these requests, as `steps.json` has them, must have moved."""
    found = Expected()
    version = numbers(engine_version)
    for request in requests:
        if request["path"] not in GENERATING or (request["status"] or 0) >= 400:
            continue
        if request["usage"] is None:
            _unreported(found, request)
        else:
            silent = version < COMPLETIONS_TELL and request["path"] == "/v1/completions"
            _reported(found, request, explicit_zero=version >= EXPLICIT_ZERO or silent)
    return found


def _unreported(found: Expected, request: dict[str, Any]) -> None:
    count = request["prompt_tokens"]
    longest = request["options"].get("max_tokens") or request["options"]["max_output_tokens"]
    aborted = "aborted_after" in request
    # A client that hangs up at once may do so before the first token (lookups only), or before all.
    began = 0 if request.get("aborted_after") == 0 else count
    found.bounds["prompt_tokens"].add(began, count)
    found.bounds["lookup_tokens"].add(began, count)
    found.bounds["cached_prompt_tokens"].add(0, count)
    found.bounds["generation_tokens"].add(0, longest)
    found.exceptions.append("an aborted stream" if aborted else "a stream without usage")


def _reported(found: Expected, request: dict[str, Any], *, explicit_zero: bool) -> None:
    usage, options = request["usage"], request["options"]
    prompt, cached, generated = _normal(usage)
    copies = options.get("n", 1)
    found.usage_sums["prompt_tokens"] += prompt
    found.usage_sums["generation_tokens"] += generated
    found.bounds["prompt_tokens"].add(copies * prompt)
    found.bounds["generation_tokens"].add(generated)
    found.bounds["lookup_tokens"].add(0 if "prompt_logprobs" in options else copies * prompt)
    if copies > 1:
        found.exceptions.append("n > 1: every copy's prompt is counted, usage has it once")
        found.bounds["cached_prompt_tokens"].add(cached or 0, copies * prompt)
    elif options.get("prompts", 1) > 1:
        # One prompt's cached tokens are reported, for all of them.
        found.bounds["cached_prompt_tokens"].add(cached or 0, prompt)
    elif cached is not None:
        found.bounds["cached_prompt_tokens"].add(cached)
    elif explicit_zero or request["path"] == "/v1/messages":
        found.bounds["cached_prompt_tokens"].add(0, prompt)
    else:
        found.bounds["cached_prompt_tokens"].add(0)
    if "prompt_logprobs" in options:
        found.exceptions.append("prompt_logprobs: counted as prompt, never looked up")


def _normal(usage: dict[str, Any]) -> tuple[int, int | None, int]:
    """All prompt tokens, the cached ones of them or None, and the generated ones, of the three shapes of usage."""
    if "prompt_tokens" in usage:
        details = usage.get("prompt_tokens_details") or {}
        return usage["prompt_tokens"], details.get("cached_tokens"), usage["completion_tokens"]
    if "input_tokens_details" in usage:
        return usage["input_tokens"], usage["input_tokens_details"].get("cached_tokens"), usage["output_tokens"]
    read = usage.get("cache_read_input_tokens")
    written = usage.get("cache_creation_input_tokens")
    return usage["input_tokens"] + (read or 0) + (written or 0), read, usage["output_tokens"]
