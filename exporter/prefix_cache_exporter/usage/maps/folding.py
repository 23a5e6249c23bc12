"""A map laid over the one that it extends, or whose usage object it found somewhere else in its own records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prefix_cache_exporter.documents import DocumentError
from prefix_cache_exporter.usage.paths import Path, PathError, parse_path

if TYPE_CHECKING:
    from collections.abc import Mapping

_OF_EXTENDER = ("format", "aliases", "extends", "usage_from", "at")
PROSE = frozenset(
    {"title", "sources", "source", "note", "meaning", "reason", "names", "values", "any_of", "none_of", "contains"}
    | {"what", "inherit"}  # of keys, of which one may begin with $
)
"""Keys whose text is never a path."""


def lay_over(base: Mapping[str, Any], document: Mapping[str, Any], file: str) -> dict[str, Any]:
    """A document with what it does not say taken from the one that it names as `extends` or `usage_from`.

    Args:
        base: the named document, itself laid over its own.
        document: of `usage_from` the usage object lies at its key `at`.
        file: where it stands, for messages.

    Raises:
        DocumentError: where `at` is no path.
    """
    below = {key: value for key, value in base.items() if key not in _OF_EXTENDER}
    if "extends" not in document:
        outer = _path(document.get("at", "$"), "at", file)
        below = _moved(below, outer)
        if outer.steps:
            below.setdefault("placed", str(outer))
        if outer.steps and "each" in below:
            below.setdefault("within", str(outer))
    if "each" in document:
        below.pop("within", None)
    return _merged(below, document)


def _merged(base: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        merged[key] = _merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged


def _moved(data: Any, outer: Path) -> Any:
    """A map's data with every path from the record's root moved below another."""
    if isinstance(data, str):
        return str(parse_path(data).within(outer)) if data.startswith("$") else data
    if isinstance(data, list):
        return [_moved(item, outer) for item in data]
    if isinstance(data, dict):
        return {key: value if key in PROSE else _moved(value, outer) for key, value in data.items()}
    return data


def _path(text: str, where: str, file: str) -> Path:
    try:
        return parse_path(text)
    except PathError as error:
        raise DocumentError(file, where, text, "a path like $.a.b[0].'c.d'") from error
