"""Writes the source of a fast lane, and gathers the struct types of the lines that it reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from prefix_cache_exporter.usage import values
from prefix_cache_exporter.usage.conditions import Every, Some, Test

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from prefix_cache_exporter.usage.conditions import Condition
    from prefix_cache_exporter.usage.paths import Path

_COUNT = Annotated[int, msgspec.Meta(ge=0, le=values.MOST_TOKENS)]
_TYPES: Mapping[str, Any] = {
    "count": _COUNT | None,
    "text": Annotated[str, msgspec.Meta(min_length=1, max_length=values.LONGEST_WORD)] | None,
    "moment": str | int | float | None,
    "scalar": str | int | float | bool | None,
    "raw": msgspec.Raw,
}
_STRICTER: Mapping[frozenset[str], str] = {
    frozenset({"raw", kind}): kind for kind in ("count", "text", "moment", "scalar")
} | {
    frozenset({"scalar", "text"}): "text",
    frozenset({"moment", "scalar"}): "moment",
    frozenset({"count", "scalar"}): "count",
}


class UnsuitableError(Exception):
    """The map says more than the lane can do."""


class _Node:
    """An object on the way to some path."""

    def __init__(self) -> None:
        self.below: dict[str, _Node | str] = {}
        self.type: Any = None

    def struct(self, name: str) -> Any:
        """The struct type that decodes it; members that no path names are skipped unread."""
        fields, renamed = [], {}
        for number, (key, below) in enumerate(self.below.items()):
            renamed[f"f{number}"] = key
            kind = below.struct(f"{name}_{number}") | None if isinstance(below, _Node) else _TYPES[below]
            fields.append((f"f{number}", kind, None))
        self.type = msgspec.defstruct(name, fields, rename=renamed, gc=False)
        return self.type


class Writer:
    """Writes the lane's source, and gathers the leaves it reads."""

    def __init__(self, usage: Path) -> None:
        self.usage = usage
        self.root = _Node()
        self.lines: list[str] = []
        self.names: dict[str, Any] = {}
        self._nodes: dict[tuple[str, ...], str] = {(): "r"}
        self._empty: dict[str, _Node] = {}
        self._serial = 0

    def finish(self) -> Any:
        """The struct type of a line, once every leaf is known."""
        struct = self.root.struct("Line")
        self.names.update({name: node.type() for name, node in self._empty.items()})
        return struct

    def line(self, text: str, depth: int = 1) -> None:
        """Writes a line of the body."""
        self.lines.append("    " * depth + text)

    def constant(self, value: Any) -> str:
        """A name for a value that the source uses."""
        name = self.name("k")
        self.names[name] = value
        return name

    def name(self, letter: str) -> str:
        """A name that nothing has yet."""
        self._serial += 1
        return f"{letter}{self._serial}"

    def leaf(self, path: Path, kind: str) -> tuple[str, str]:
        """The variable of the object that holds a path's last key, and the key's place in it."""
        steps = self._steps(path)
        node = self.root
        for at, step in enumerate(steps[:-1]):
            below = node.below.setdefault(step, _Node())
            if below == "raw":  # asked about until now; an object answers that too
                below = node.below[step] = _Node()
            if not isinstance(below, _Node):
                raise UnsuitableError
            self._reach(steps[: at + 1], node)
            node = below
        key = steps[-1]
        known = node.below.get(key)
        if isinstance(known, _Node):
            if kind != "raw":
                raise UnsuitableError
        elif known is None or known == kind:
            node.below[key] = kind
        elif frozenset({known, kind}) in _STRICTER:
            node.below[key] = _STRICTER[frozenset({known, kind})]
        else:
            raise UnsuitableError
        return self._nodes[steps[:-1]], f"f{list(node.below).index(key)}"

    def _steps(self, path: Path) -> tuple[str, ...]:
        steps = path.steps if path.absolute else self.usage.steps + path.steps
        if not steps or not all(isinstance(step, str) for step in steps):
            raise UnsuitableError
        return tuple(str(step) for step in steps)

    def _reach(self, steps: tuple[str, ...], holder: _Node) -> None:
        if steps not in self._nodes:
            outer = self._nodes[steps[:-1]]
            field = f"f{list(holder.below).index(steps[-1])}"
            name = self._nodes[steps] = self.name("n")
            empty = self.name("e")  # stands for an object that is not there: nothing below it is
            node = holder.below[steps[-1]]
            assert isinstance(node, _Node)  # noqa: S101  # for mypy: that is why it is reached
            self._empty[empty] = node
            self.line(f"{name} = {outer}.{field} or {empty}")

    def first(self, paths: Sequence[Path], kind: str) -> str:
        """A variable with the first value at the paths that is not null."""
        name = self.name("v")
        if not paths:
            self.line(f"{name} = None")
        for at, path in enumerate(paths):
            before = len(self.lines)
            outer, field = self.leaf(path, kind)
            value = f"{outer}.{field}"
            if at == 0:
                self.line(f"{name} = {value}")
                continue
            reached, self.lines[before:] = self.lines[before:], []
            self.lines += reached  # objects on the way are looked up once, for whoever needs them later
            self.line(f"if {name} is None:")
            self.line(f"{name} = {value}", 2)
        return name

    def condition(self, condition: Condition) -> str:
        """An expression for whether a condition holds; what it reads has been written before it."""
        if isinstance(condition, Every | Some):
            parts = [self.condition(part) for part in condition.parts]
            joiner, empty = (" and ", "True") if isinstance(condition, Every) else (" or ", "False")
            return f"({joiner.join(parts)})" if parts else empty
        if not isinstance(condition, Test):
            raise UnsuitableError
        if condition.test == "present":
            value = self.present(condition.paths)
            return value if condition.operand else f"(not {value})"
        value = self.first(condition.paths, "scalar")
        return f"({value} is not None and {self.constant(condition.passes)}({value}))"

    def present(self, paths: Sequence[Path]) -> str:
        """An expression for whether anything but null stands at one of the paths."""
        tests = []
        for path in paths:
            outer, field = self.leaf(path, "raw")
            value = self.name("v")
            self.line(f"{value} = {outer}.{field}")
            tests.append(f"({value} is not None and {self.constant(_not_null)}({value}))")
        return f"({' or '.join(tests)})" if tests else "False"


def _not_null(value: Any) -> bool:
    return not isinstance(value, msgspec.Raw) or bytes(value) != b"null"
