"""Mistakes in a usage map that a JSON Schema finds but cannot word, or cannot find: told before the schema is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from prefix_cache_exporter.documents import DocumentError, place, shown
from prefix_cache_exporter.usage.paths import PathError, parse_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_FROM_RECORD: Final = ("at", "usage", "id", "time", "model", "each", "decode", "attributes", "last")
"""Keys whose paths begin at the record: what they look for is never within the usage object."""
_CONDITIONS: Final = (
    ("skip",),
    ("tier_when",),
    ("retry",),
    ("replay",),
    ("batch",),
    ("context",),
    ("own",),
    ("status", "rules"),
    ("additive", "when"),
    ("additive", "gateway"),
    ("stream", "starts"),
    ("stream", "closed"),
    ("stream", "complete"),
)
_BESIDE: Final[Mapping[tuple[str, ...], frozenset[str]]] = {
    ("skip",): frozenset({"reason"}),
    ("tier_when",): frozenset({"tier"}),
    ("context",): frozenset({"set"}),
    ("status", "rules"): frozenset({"is", "values"}),
    ("additive", "when"): frozenset({"rule", "total"}),
}
_TESTS: Final = ("all", "any", "any_of", "at_least", "contains", "empty", "none_of", "present")
_OPERANDS: Final[Mapping[str, tuple[type | tuple[type, ...], str]]] = {
    "all": (list, "a list of conditions"),
    "any": (list, "a list of conditions"),
    "any_of": (list, "a list of values"),
    "none_of": (list, "a list of values"),
    "at_least": ((int, float), "a number"),
    "contains": (str, "text"),
    "empty": (bool, "true or false"),
    "present": (bool, "true or false"),
}
_STATUSES: Final = ("success", "failed", "cancelled", "incomplete")


def look(document: Any, file: str) -> None:
    """Looks a map over, before its schema does.

    Raises:
        DocumentError: for the first mistake.
    """
    if not isinstance(document, dict):
        return  # the schema says so
    if "extends" in document and "usage_from" in document:
        raise DocumentError(file, "usage_from", "extends beside it", "one of them")
    for where, text in _texts(document):
        _path(where, text, file)
    for keys in _CONDITIONS:
        found: Any = document
        for key in keys:
            found = found.get(key) if isinstance(found, dict) else None
        for number, condition in enumerate(found if isinstance(found, list) else ()):
            _condition([*keys, number], condition, _BESIDE.get(keys, frozenset()), file)
    for where, condition in _conditions_of_spans(document):
        _condition(where, condition, frozenset(), file)


def _conditions_of_spans(document: Mapping[str, Any]) -> Iterator[tuple[list[str | int], Any]]:
    """Conditions under which time spans count, and where they stand."""
    for key in ("ttft", "duration"):
        spans = document.get(key)
        for at, span in enumerate(spans if isinstance(spans, list) else ()):
            found = span.get("when") if isinstance(span, dict) else None
            for number, condition in enumerate(found if isinstance(found, list) else ()):
                yield [key, at, "when", number], condition


def _texts(document: Mapping[str, Any]) -> Iterator[tuple[list[str | int], Any]]:
    """Paths that begin at the record, and where they stand."""
    provider = document.get("provider")
    given: list[tuple[list[str | int], Any]] = [([key], document[key]) for key in _FROM_RECORD if key in document]
    if isinstance(provider, dict) and "from" in provider:
        given.append((["provider", "from"], provider["from"]))
    for where, value in given:
        if isinstance(value, list):
            yield from (([*where, number], item) for number, item in enumerate(value))
        else:
            yield where, value


def _path(where: list[str | int], text: Any, file: str) -> None:
    if not isinstance(text, str):
        return  # the schema says so
    if not text.startswith("$"):
        raise DocumentError(file, place(where), text, f"a path from the record: $.{text.lstrip('.')}")
    try:
        parse_path(text)
    except PathError as error:
        raise DocumentError(file, place(where), text, "a path like $.a.b[0].'c.d'") from error


def _condition(where: list[str | int], condition: Any, beside: frozenset[str], file: str) -> None:
    if not isinstance(condition, dict):
        raise DocumentError(file, place(where), shown(condition), "a condition: a path and a test")
    known = sorted(beside | {"path", *_TESTS})
    for key in condition:
        if key not in known:
            raise DocumentError(file, place(where), f"the unknown key {key}", f"one of {', '.join(known)}")
    tests = [test for test in _TESTS if test in condition]
    if "values" in condition and not tests:
        _statuses([*where, "values"], condition["values"], file)
    elif len(tests) != 1:
        got = f"{' and '.join(tests)} together" if tests else "no test"
        raise DocumentError(file, place(where), got, f"one of {', '.join(_TESTS)}")
    else:
        _operand(where, tests[0], condition, file)


def _statuses(where: list[str | int], values: Any, file: str) -> None:
    for text, status in values.items() if isinstance(values, dict) else ():
        if status not in _STATUSES:
            raise DocumentError(file, place([*where, text]), shown(status), f"one of {', '.join(_STATUSES)}")


def _operand(where: list[str | int], test: str, condition: Mapping[str, Any], file: str) -> None:
    kind, words = _OPERANDS[test]
    operand = condition[test]
    if not isinstance(operand, kind) or (isinstance(operand, bool) and kind is not bool):
        raise DocumentError(file, place([*where, test]), shown(operand), words)
    if test in {"all", "any"}:
        for number, part in enumerate(condition[test]):
            _condition([*where, test, number], part, frozenset(), file)
    elif "path" not in condition:
        raise DocumentError(file, place(where), "no path", "the key path")
