"""Mistakes in a usage map that a JSON Schema finds but cannot word, or cannot find: told before the schema is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from prefix_cache_exporter.documents import DocumentError, place, shown
from prefix_cache_exporter.mistakes import refuse
from prefix_cache_exporter.usage.paths import PathError, parse_path

from .folding import PROSE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_FROM_RECORD: Final = ("at", "usage", "id", "time", "model", "each", "decode", "attributes", "last")
"""Keys whose paths begin at the record: what they look for is never within the usage object."""
_CONDITIONS: Final = (
    ("foreign",),
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
    ("stream", "adds"),
    ("stream", "closed"),
    ("stream", "complete"),
)
_BESIDE: Final[Mapping[tuple[str, ...], frozenset[str]]] = {
    ("foreign",): frozenset({"what"}),
    ("skip",): frozenset({"reason"}),
    ("tier_when",): frozenset({"tier"}),
    ("context",): frozenset({"set"}),
    ("status", "rules"): frozenset({"is", "values"}),
    ("additive", "when"): frozenset({"rule", "total"}),
}
_SWITCHES: Final = frozenset({("batch",), ("additive", "gateway")})
"""Conditions that may also be true or false, for all records."""
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
_Finding: TypeAlias = tuple[Sequence[str | int], str, str]
"""Where, what stood there, what was expected."""


def look(document: Any, file: str) -> list[DocumentError]:
    """What is wrong with a map that its schema would say in worse words, or not at all."""
    if not isinstance(document, dict):
        return []  # the schema says so
    return [DocumentError(file, place(where), got, expected) for where, got, expected in _findings(document)]


def _findings(document: Mapping[str, Any]) -> Iterator[_Finding]:
    if "extends" in document and "usage_from" in document:
        yield ["usage_from"], "extends beside it", "one of them"
    if "at" in document and "usage_from" not in document:
        yield ["at"], "no usage_from beside it", "the format of the object there as usage_from"
    for where, text in _texts(document):
        yield from _path(where, text)
    for walked in _lists_walked(document, ()):
        yield walked, "a path with [*]", "one without: only each goes through a list"
    for keys in _CONDITIONS:
        yield from _conditions(keys, document)
    for key in ("ttft", "duration"):
        yield from _spans(key, document.get(key, []))


def _conditions(keys: tuple[str, ...], document: Any) -> Iterator[_Finding]:
    """The conditions at a place of a map."""
    found = document
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    if found is None or (isinstance(found, bool) and keys in _SWITCHES):
        return
    if not isinstance(found, list):
        yield keys, shown(found), "a list of conditions: [{path: $.a, present: true}]"
        return
    for number, condition in enumerate(found):
        yield from _condition([*keys, number], condition, _BESIDE.get(keys, frozenset()))


def whole_or_raise(folded: Mapping[str, Any], file: str) -> None:
    """Looks at what a map comes to with all that it builds on.

    Raises:
        DocumentError: where it says too little to come to records, or something that nothing makes use of.
    """
    tokens = folded.get("tokens", {})
    wrong = []
    if not tokens.get("input") and not (tokens.get("uncached") and tokens.get("read")):
        expected = "the key input: where the number of input tokens stands"
        wrong.append(DocumentError(file, "tokens", "no input", expected))
    if folded.get("inherit") and not folded.get("each"):
        wrong.append(DocumentError(file, "inherit", "no each beside it", "each: where the records of a line stand"))
    refuse(wrong)


def with_near_key(error: DocumentError) -> DocumentError:
    """The same mistake, with the key that an unknown one looks like."""
    written = error.got.removeprefix("the unknown key ")
    if written == error.got:
        return error
    known = error.expected.removeprefix("one of ").split(", ")
    return DocumentError(error.file, error.path, error.got, _hinted(written, known))


def _hinted(written: str, known: list[str]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415  # for mistakes alone

    near = get_close_matches(written, known, n=1)
    return f"one of {', '.join(known)}{f'; did you mean {near[0]}?' if near else ''}"


def _lists_walked(data: Any, where: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    """Where paths stand that go through every item of a list, and may not."""
    if isinstance(data, str) and "[*]" in data:
        yield where
    for key, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        if key not in PROSE and (where, key) != ((), "each"):
            yield from _lists_walked(value, (*where, key))


def _spans(key: str, spans: Any) -> Iterator[_Finding]:
    """Time spans, and the conditions under which they count."""
    if not isinstance(spans, list):
        yield [key], shown(spans), "a list of time spans: [{path: $.ms, unit: ms}]"
        return
    for at, span in enumerate(spans):
        if not isinstance(span, dict):
            yield [key, at], shown(span), "a time span: {path: $.ms, unit: ms}"
            continue
        if "path" not in span:
            missing = next((name for name in ("from", "to") if name not in span), None)
            if missing is not None:
                got = "neither path nor from and to" if "to" not in span and missing == "from" else f"no {missing}"
                yield [key, at], got, "path and unit, or from and to"
        found = span.get("when")
        for number, condition in enumerate(found if isinstance(found, list) else ()):
            yield from _condition([key, at, "when", number], condition, frozenset())


def _texts(document: Mapping[str, Any]) -> Iterator[tuple[list[str | int], Any]]:
    """Paths that begin at the record, and where they stand."""
    provider = document.get("provider")
    given: list[tuple[list[str | int], Any]] = [([key], document[key]) for key in _FROM_RECORD if key in document]
    if isinstance(provider, dict) and "from" in provider:
        given.append((["provider", "from"], provider["from"]))
    for number, entry in enumerate(document.get("context") or ()):
        said = entry.get("set") if isinstance(entry, dict) else None
        given += [
            (["context", number, "set", name], path) for name, path in (said if isinstance(said, dict) else {}).items()
        ]
    for where, value in given:
        if isinstance(value, list):
            yield from (([*where, number], item) for number, item in enumerate(value))
        else:
            yield where, value


def _path(where: list[str | int], text: Any) -> Iterator[_Finding]:
    if not isinstance(text, str):
        return  # the schema says so
    if not text.startswith("$"):
        meant = text.lstrip(".")
        yield where, text or shown(text), f"a path from the record: $.{meant}" if meant else "a path like $.a.b"
        return
    try:
        parse_path(text)
    except PathError:
        yield where, text, "a path like $.a.b[0].'c.d'"


def _condition(where: list[str | int], condition: Any, beside: frozenset[str]) -> Iterator[_Finding]:
    if not isinstance(condition, dict):
        yield where, shown(condition), "a condition: a path and a test"
        return
    known = sorted(beside | {"path", *_TESTS})
    unknown = [key for key in condition if key not in known]
    if unknown:  # what was meant for a test is not missing
        yield from ((where, f"the unknown key {key}", _hinted(str(key), known)) for key in unknown)
        return
    tests = [test for test in _TESTS if test in condition]
    if "values" in condition and not tests:
        yield from _statuses([*where, "values"], condition["values"])
    elif len(tests) != 1:
        got = f"{' and '.join(tests)} together" if tests else "no test"
        yield where, got, f"one of {', '.join(_TESTS)}"
    elif "is" in beside and condition.get("is") not in _STATUSES:
        got = shown(condition["is"]) if "is" in condition else "nothing"
        yield [*where, "is"], got, f"one of {', '.join(_STATUSES)}"
    else:
        yield from _operand(where, tests[0], condition)


def _statuses(where: list[str | int], values: Any) -> Iterator[_Finding]:
    for text, status in values.items() if isinstance(values, dict) else ():
        if status not in _STATUSES:
            yield [*where, text], shown(status), f"one of {', '.join(_STATUSES)}"


def _operand(where: list[str | int], test: str, condition: Mapping[str, Any]) -> Iterator[_Finding]:
    kind, words = _OPERANDS[test]
    operand = condition[test]
    if not isinstance(operand, kind) or (isinstance(operand, bool) and kind is not bool):
        yield [*where, test], shown(operand), words
    elif not operand and kind in {list, str}:
        yield [*where, test], shown(operand), f"{words}, at least one" if kind is list else "text that is not empty"
    elif test in {"all", "any"}:
        for number, part in enumerate(condition[test]):
            yield from _condition([*where, test, number], part, frozenset())
    elif "path" not in condition:
        yield where, "no path", "the key path"
    elif kind is list:
        for number, value in enumerate(condition[test]):
            if not isinstance(value, str | int | float):
                yield [*where, test, number], shown(value), "text, a number, true or false"
