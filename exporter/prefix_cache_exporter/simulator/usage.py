"""What a gateway in front of the engine writes down: one line per request, in the shape of OpenAI chat completions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

from prefix_cache_exporter.tokens.blocks import ROOT, block_hash

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from .requests import Request
    from .rules import Rules

_FINGERPRINT_DIGITS = 16


@dataclass(frozen=True, slots=True)
class Origin:
    """What only the gateway knows of a request.

    Attributes:
        template, template_revision: the prompt template that rendered it.
        namespace: trust group whose prefixes may be shared.
        task: what it was for.
        leading_fingerprint: what the beginning of its prompt is told apart by.
    """

    template: str
    template_revision: str
    namespace: str
    task: str = "chat"
    leading_fingerprint: str = ""


def usage_of(family: Sequence[Request], rules: Rules) -> dict[str, Any]:
    """The `usage` object that the server answers with: the prompt once, the completions of all `n` sequences.

    Cached tokens are those of one sequence, the last; the counters have those of all. Older releases leave the details
    null where nothing was cached: "0" and "unknown" look alike there.
    """
    last = family[-1]
    generated = sum(request.generated for request in family)
    details: dict[str, int] | None = None
    if last.cached or rules.zero_cached_reported:
        details = {"cached_tokens": last.cached}
        if rules.created_reported:
            details["created_cache_tokens"] = last.created
    return {
        "prompt_tokens": last.prompt.length,
        "total_tokens": last.prompt.length + generated,
        "completion_tokens": generated,
        "prompt_tokens_details": details,
    }


def usage_line(family: Sequence[Request], usage: Mapping[str, Any], origin: Origin, model: str, now: float) -> bytes:
    """One line of the gateway's log.

    Args:
        family: the finished sequences of one request.
        usage: what `usage_of` gave.
        origin: what the gateway knows.
        model: the model asked for.
        now: when the last token came, in seconds since 1970 on the clock of the requests' times.
    """
    first = family[0]
    record = {
        "id": f"chatcmpl-{first.id}",
        "object": "chat.completion",
        "created": int(first.arrived),
        "time": datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "status": "success",
        "model": model,
        "usage": usage,
        "ttft_seconds": round(first.first_token - first.arrived, 6),
        "duration_seconds": round(now - first.arrived, 6),
        "metadata": {
            "template": origin.template,
            "template_revision": origin.template_revision,
            "namespace": origin.namespace,
            "task": origin.task,
            "leading_fingerprint": origin.leading_fingerprint,
        },
    }
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def leading_fingerprint(tokens: Sequence[int], block_size: int) -> str:
    """What the beginning of a prompt is told apart by: its first block, whoever sent it.

    Salt and adapter are left out: they keep caches apart on purpose, while this shows prompts that differ by accident.
    """
    return block_hash(ROOT, tokens[:block_size]).hex()[:_FINGERPRINT_DIGITS]


class UsageLog:
    """A log file that is appended to line by line.

    Args:
        path: the file; made anew where it is missing.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)  # whole lines, or nothing, for whoever follows it

    def write(self, line: bytes) -> None:
        """Appends one line, its end included."""
        self._file.write(line)

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
