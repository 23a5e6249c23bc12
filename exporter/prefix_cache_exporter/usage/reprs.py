"""Objects that were logged as text: JSON, an event, the repr of a Python object or dict, `str()` of a model.

    CompletionUsage(prompt_tokens=2000, prompt_tokens_details=PromptTokensDetails(cached_tokens=1920))
    prompt_tokens=2000 prompt_tokens_details=PromptTokensDetails(cached_tokens=1920)
    {'prompt_tokens': 2000, 'prompt_tokens_details': {'cached_tokens': 1920}}

Databases and loggers keep usage objects so: https://github.com/simonw/llm/issues/614.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from .events import events, is_events

_LONGEST_JSON = 1 << 20
_LONGEST_REPR = 1 << 16
_DEEPEST = 32
_TOKEN = re.compile(
    r"\s*(?:"
    r"(?P<key>[A-Za-z_][\w.]*|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")\s*[=:](?!=)"
    r"|(?P<open>[A-Za-z_][\w.]*\(|[({\[])"
    r"|(?P<close>[)}\]])"
    r"|(?P<number>-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)(?![\w.])"
    r"|(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|<[^<>]*(?:<[^<>]*>[^<>]*)*>)"
    r"|(?P<word>[^\s,()\[\]{}<>'\"=:]+)"
    r"|(?P<other>,|.))",
    re.DOTALL,
)
_WORDS: dict[str, Any] = {"None": None, "null": None, "True": True, "true": True, "False": False, "false": False}


def from_repr(text: str) -> dict[str, Any]:
    """The members of an object that was logged as text; empty where it is none. Never raises.

    Numbers of a repr stay text: whoever needs a count reads them as strictly as any other text.
    """
    if text[:1] in ("{", '"') and len(text) <= _LONGEST_JSON:
        try:
            decoded = msgspec.json.decode(text)
        except (ValueError, RecursionError):
            pass
        else:
            # An object encoded twice is text of the text.
            return decoded if isinstance(decoded, dict) else from_repr(decoded) if isinstance(decoded, str) else {}
    if is_events(text):
        found = events(text[:_LONGEST_JSON])
        return found[0] if len(found) == 1 and isinstance(found[0], dict) else {}
    return _parsed(text[:_LONGEST_REPR])


def items(value: Any) -> list[Any]:
    """The items of a list; of a text the data of its events, the items of a JSON list, or the one object."""
    if isinstance(value, str) and len(value) <= _LONGEST_JSON:
        if is_events(value):
            return events(value)
        try:
            decoded = msgspec.json.decode(value)
        except (ValueError, RecursionError):
            return []
        return [decoded] if isinstance(decoded, dict) else decoded if isinstance(decoded, list) else []
    return value if isinstance(value, list) else []


def _parsed(text: str) -> dict[str, Any]:
    """Reads a repr without recursion; what fits nowhere is passed over."""
    root: dict[str, Any] = {}
    holders: list[dict[str, Any] | list[Any]] = [root]
    key: str | None = None
    for found in _TOKEN.finditer(text):
        kind, holder = found.lastgroup, holders[-1]
        if kind == "key":
            key = found["key"].strip("'\"")
            continue
        if kind == "open":
            below: dict[str, Any] | list[Any] = [] if found["open"] in {"[", "("} else {}
            if key is None and holder is root and isinstance(below, dict):
                below = root  # the object itself
            else:
                _put(holder, key, below)
            holders.append(below)
            if len(holders) > _DEEPEST:
                break
        elif kind == "close" and len(holders) > 1:
            holders.pop()
        elif kind in {"number", "word"}:
            _put(holder, key, _WORDS.get(found[kind], found[kind]))
        elif kind == "text":
            _put(holder, key, found["text"].strip("'\""))
        key = None
    return root


def _put(holder: dict[str, Any] | list[Any], key: str | None, value: Any) -> None:
    if isinstance(holder, list):
        holder.append(value)
    elif key is not None:
        holder[key] = value
