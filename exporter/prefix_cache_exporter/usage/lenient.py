"""JSON that only lenient readers take, several values on a line, and JSON behind a text."""

from __future__ import annotations

import json
import re
from typing import Any, Final

_LENIENT: Final = json.JSONDecoder()
_BETWEEN: Final = re.compile(r"[\s,]*")
_MOST_BRACES: Final = 8
"""So many braces may stand in a text before the JSON."""


def values_of(text: str) -> list[Any]:
    """The JSON values of a line: one, or several that something put behind one another without a line's end.

    Raises:
        ValueError: where anything else stands between or behind them.
    """
    found, place = [], 0
    while place < len(text):
        value, place = _LENIENT.raw_decode(text, place)
        # Once more, so that no lone surrogate remains: no metric, state or terminal takes one.
        found.append(json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "xmlcharrefreplace")))
        place = _BETWEEN.match(text, place).end()  # type: ignore[union-attr]  # matches nothing, too
    return found


def behind(text: str) -> list[Any]:
    """The JSON object that ends a line of text; nothing where there is none."""
    place = -1
    for _ in range(_MOST_BRACES):
        place = text.find("{", place + 1)
        if place < 0:
            break
        try:
            return values_of(text[place:])
        except (ValueError, RecursionError):
            continue
    return []


def why_no_json(text: str, error: ValueError) -> str:
    """What is wrong with a line, in words that hold none of it."""
    if text.startswith("{'"):
        return "got a Python dict, expected one JSON object"
    if text[0] in "{[":
        place = f" at character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else ""
        return f"got broken JSON{place}, expected one JSON object"
    if text.endswith("}") and "{" in text:
        return "got text before the JSON, expected one JSON object"
    return "got text, expected one JSON object"
