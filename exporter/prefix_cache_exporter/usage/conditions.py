"""Conditions of a usage map: when a line is no record, a request failed, a stream has ended."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from .paths import MISSING, Path, parse_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Condition(Protocol):
    """Something that holds or does not hold of a record; asking never raises."""

    def holds(self, record: Any, usage: Any) -> bool:
        """Whether it holds of the decoded record and its usage object."""
        ...


class Test(msgspec.Struct, frozen=True):
    """One question about the first value present at some paths.

    Attributes:
        paths: where to look; the first that holds something other than null is asked about.
        test: `present`, `any_of`, `none_of`, `at_least`, `contains` or `empty`.
        operand: what the test is against.
    """

    paths: tuple[Path, ...]
    test: str
    operand: Any

    def holds(self, record: Any, usage: Any) -> bool:
        """Whether the value passes the test."""
        value = first(self.paths, record, usage)
        if self.test == "present":
            return (value is not None) is self.operand
        return value is not None and self.passes(value)

    def passes(self, value: Any) -> bool:
        """Whether a value that is there passes a test other than `present`."""
        if self.test == "empty":
            return (value in ([], {}, "")) is self.operand
        if self.test == "at_least":
            return _number(value) >= float(self.operand)
        if self.test == "contains":
            return isinstance(value, str) and str(self.operand).casefold() in value.casefold()
        known: bool = _plain(value) in self.operand
        return known if self.test == "any_of" else not known


class Every(msgspec.Struct, frozen=True):
    """Holds where all of its parts hold."""

    parts: tuple[Condition, ...]

    def holds(self, record: Any, usage: Any) -> bool:
        """Whether all parts hold."""
        return all(part.holds(record, usage) for part in self.parts)


class Some(msgspec.Struct, frozen=True):
    """Holds where one of its parts holds; never without parts."""

    parts: tuple[Condition, ...]

    def holds(self, record: Any, usage: Any) -> bool:
        """Whether one part holds."""
        return any(part.holds(record, usage) for part in self.parts)


NEVER = Some(())


def first(paths: Sequence[Path], record: Any, usage: Any) -> Any:
    """The first value at the paths that is not null; None where there is none."""
    for path in paths:
        value = path.get(record if path.absolute else usage)
        if value is not None and value is not MISSING:
            return value
    return None


def parse_paths(data: Any) -> tuple[Path, ...]:
    """The paths of a map's entry, which is one path or a list of them."""
    return tuple(parse_path(text) for text in ([data] if isinstance(data, str) else data or ()))


def parse_condition(data: Mapping[str, Any]) -> Condition:
    """Compiles one condition that the schema has passed."""
    if "all" in data:
        return Every(tuple(map(parse_condition, data["all"])))
    if "any" in data:
        return Some(tuple(map(parse_condition, data["any"])))
    test = next(name for name in _TESTS if name in data)
    operand = data[test]
    if test in {"any_of", "none_of"}:
        operand = frozenset(map(_plain, operand))
    return Test(parse_paths(data["path"]), test, operand)


def parse_some(data: Sequence[Mapping[str, Any]] | None) -> Some:
    """Compiles a list of conditions of which one is enough."""
    return Some(tuple(map(parse_condition, data))) if data else NEVER


_TESTS = ("present", "any_of", "none_of", "at_least", "contains", "empty")


def _number(value: Any) -> float:
    """A number or its text; what is neither is less than any bound."""
    try:
        return -math.inf if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return -math.inf


def _plain(value: Any) -> tuple[str, Any]:
    """A value that compares as people mean it: text without case, and 1 apart from true."""
    if isinstance(value, str):
        return "text", value.casefold()
    if isinstance(value, bool | int | float):
        return type(value).__name__, value
    return "other", None
