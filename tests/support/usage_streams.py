"""Chunks of streamed chat completions, as a source takes them in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prefix_cache_exporter.usage.intake import Intake
from prefix_cache_exporter.usage.maps.book import get_map

from .usage import encode

if TYPE_CHECKING:
    from prefix_cache_exporter.usage.record import Outcome


def chunk(
    id_: str | None,
    prompt: int | None = None,
    cached: int | None = None,
    output: int = 0,
    *,
    last: bool = False,
    text: str = "x",
) -> dict[str, Any]:
    """A chunk with content, or the last one; with usage where the prompt has a length."""
    usage: dict[str, Any] | None = None
    if prompt is not None:
        usage = {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}
        if cached is not None:
            usage["prompt_tokens_details"] = {"cached_tokens": cached}
    choices = [] if last else [{"delta": {"content": text}}]
    return {**({"id": id_} if id_ else {}), "object": "chat.completion.chunk", "choices": choices, "usage": usage}


def feed(intake: Intake, *lines: Any, now: float = 0.0, scope: str = "f") -> list[Outcome]:
    """All that becomes of some lines of one file at a time."""
    return intake.take([encode(line) for line in lines], now, scope)


def stream(**options: Any) -> Intake:
    """A source of streamed chat completions."""
    return Intake(get_map("vllm.chat.stream"), **options)
