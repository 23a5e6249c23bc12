"""Model names as price books and reuse rules write them: `claude-opus-4-5*`, `*nova-pro*`, `/^o[134]-/`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_SNAPSHOT = re.compile(r"[-@](\d{4})-?(\d{2})-?(\d{2})(?=$|[-:@])")
"""A dated snapshot within a model name: `-2026-09-29`, `-20260929`, `@20260929`."""


def compile_patterns(patterns: Iterable[str]) -> re.Pattern[str]:
    """One expression for a list of patterns, to be used with `search` on a lower-case name.

    Raises:
        ValueError: where a pattern between slashes is not a regular expression.
    """
    parts = []
    for pattern in patterns:
        if len(pattern) > 1 and pattern[0] == pattern[-1] == "/":
            expression = pattern[1:-1]
            try:
                re.compile(expression)
            except re.error as error:
                raise ValueError(f"{pattern} is not a regular expression: {error}") from error
        else:
            expression = "^" + ".*".join(map(re.escape, pattern.lower().split("*"))) + "$"
        parts.append(f"(?:{expression})")
    return re.compile("|".join(parts))


def spellings(model: str) -> Iterator[str]:
    """The names that one model may stand under in a book, the most specific first.

    Gateways put routes in front (`openrouter/anthropic/claude-…`, `publishers/google/models/gemini-…`), and snapshots
    carry dates in three spellings.
    """
    name = model.strip().lower()
    seen = set()
    parts = name.split("/")
    for start in range(len(parts)):
        candidate = "/".join(parts[start:])
        dashed = _SNAPSHOT.sub(r"-\1-\2-\3", candidate)
        for spelling in (candidate, dashed, _SNAPSHOT.sub("", candidate)):
            if spelling and spelling not in seen:
                seen.add(spelling)
                yield spelling
