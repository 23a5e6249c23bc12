r"""Paths into decoded JSON: the small subset that maps and configuration use.

A path that starts with `$` begins at the record, any other at the record's usage object:

    $.response.body.usage       keys
    $.choices[0].finish_reason  an item of a list; [-1] is the last one
    $.'gen_ai.usage.tokens'     a quoted key may hold dots, brackets and spaces; \\' is a quote within one
    $["gen_ai.usage.tokens"]    the same, in brackets
    $.spans[*]                  every item; only where a map says how a line falls into records
    prompt_tokens_details.cached_tokens
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from .reprs import from_repr, items

if TYPE_CHECKING:
    from collections.abc import Iterator


class PathError(ValueError):
    """A path that cannot be read.

    Attributes:
        path: the whole path as it was written.
        position: the offset of the first character that fits nothing.
    """

    def __init__(self, path: str, position: int) -> None:
        self.path, self.position = path, position
        super().__init__(f"{path}: got {path[position : position + 12]!r} at {position}, expected .key, [0] or ['key']")


class _Every:
    """The step `[*]`."""

    def __repr__(self) -> str:
        return "*"


EVERY: Final = _Every()
Step = str | int | _Every  # what a path is made of

MISSING: Final = msgspec.UNSET
"""What `Path.get` gives where nothing stands, as against the `null` that it gives as None."""

_FIRST = re.compile(r"([^.\[\]'\"$\s]+)|'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"")
_NEXT = re.compile(
    r"\.([^.\[\]'\"$\s]+)|\.'((?:[^'\\]|\\.)*)'|\.\"((?:[^\"\\]|\\.)*)\""
    r"|\[(-?\d{1,9}|\*)\]|\['((?:[^'\\]|\\.)*)'\]|\[\"((?:[^\"\\]|\\.)*)\"\]"
)
_INDEX_GROUP = 4
_ESCAPED = re.compile(r"\\(.)")


class Path(msgspec.Struct, frozen=True):
    """A compiled path.

    Attributes:
        steps: keys (text), list positions (int) and `EVERY`.
        absolute: whether it starts at the record; else at the usage object.
    """

    steps: tuple[Step, ...]
    absolute: bool

    def get(self, root: Any) -> Any:
        """The value there, or `MISSING`; never raises. `root` is the record or the usage object."""
        for step in self.steps:
            if isinstance(root, dict):
                root = root.get(step, MISSING)
            elif isinstance(root, list) and isinstance(step, int):
                root = root[step] if -len(root) <= step < len(root) else MISSING
            elif isinstance(root, str) and isinstance(step, str):
                root = from_repr(root).get(step, MISSING)
            else:
                return MISSING
        return root

    def each(self, root: Any) -> Iterator[Any]:
        """Every value there; only `[*]` makes more than one."""
        found = [root]
        for step in self.steps:
            if step is EVERY:
                found = [item for value in found for item in items(value)]
            else:
                found = [Path((step,), self.absolute).get(value) for value in found]
        return (value for value in found if value is not MISSING and value is not None)

    def within(self, outer: Path) -> Path:
        """This path where its root stands at `outer`."""
        return Path(outer.steps + self.steps, outer.absolute)

    def __str__(self) -> str:
        text = "$" if self.absolute else ""
        for step in self.steps:
            if not isinstance(step, str):
                text += f"[{step}]"
            elif re.fullmatch(r"[^.\[\]'\"$\s]+", step):
                text += f".{step}" if text else step
            else:
                quoted = "'" + step.replace("\\", "\\\\").replace("'", "\\'") + "'"
                text += f".{quoted}" if text else quoted
        return text


@cache
def parse_path(text: str) -> Path:
    """Compiles a path.

    Raises:
        PathError: where it is not one.
    """
    steps: list[Step] = []
    absolute = text.startswith("$")
    position = 1
    if not absolute:
        first = _FIRST.match(text)
        if first is None:
            raise PathError(text, 0)
        steps.append(_key(first.groups()))
        position = first.end()
    while position < len(text):
        found = _NEXT.match(text, position)
        if found is None:
            raise PathError(text, position)
        index = found[_INDEX_GROUP]
        steps.append(_key(found.groups()) if index is None else EVERY if index == "*" else int(index))
        position = found.end()
    return Path(tuple(steps), absolute)


def _key(groups: tuple[str | None, ...]) -> str:
    return _ESCAPED.sub(r"\1", next(group for group in groups if group is not None))
