"""Words that YAML 1.1 takes for something else than whoever wrote them: `yes` and `on` for true, `12:30` for 750."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import yaml

from prefix_cache_exporter.documents import DocumentError, place

if TYPE_CHECKING:
    from collections.abc import Iterator

_SWITCHES: Final = frozenset(
    {"present", "empty", "aggregate", "batch", "cumulative", "gateway", "write_is_split", "write_outside", "inferred"}
)
"""Keys that are true or false, however that is written."""
_ODD_NUMBER: Final = re.compile(r"[-+]?0[0-9_]+|.*[:_].*")
"""Octal, parted by underscores, and hours and minutes."""


def misread(content: bytes, file: str) -> Iterator[DocumentError]:
    """Looks for bare words that a map would compare with a log as what they are not.

    Args:
        content: YAML that has been read already.
        file: where it stands, for messages.
    """
    for where, node, is_key in _words(yaml.compose(content, Loader=yaml.CSafeLoader), (), set()):
        kind = node.tag.rpartition(":")[2]
        if kind == "null" and is_key:  # nothing is ever compared with null: what is not there is not looked at
            instead = "a word, or present: false of a condition"
            yield DocumentError(
                file, place(where), f"the key {node.value or 'null'}, which YAML takes for nothing", instead
            )
            continue
        if kind == "bool" and node.value.casefold() not in {"true", "false"} and not (where and where[-1] in _SWITCHES):
            said = "true" if node.value.casefold() in {"yes", "on"} else "false"
            instead = f"'{node.value}' in quotes, or {said}"
        elif kind in {"int", "float"} and _ODD_NUMBER.fullmatch(node.value):
            said, instead = "another number", f"'{node.value}' in quotes"
        else:
            continue
        yield DocumentError(file, place(where), f"{node.value}, which YAML takes for {said}", instead)


def _words(
    node: yaml.Node | None, where: tuple[str | int, ...], seen: set[int], *, is_key: bool = False
) -> Iterator[tuple[tuple[str | int, ...], yaml.ScalarNode, bool]]:
    """The bare words of a document, where they stand, and whether as a key."""
    if isinstance(node, yaml.ScalarNode):
        if not node.style:
            yield where, node, is_key
        return
    if node is None or id(node) in seen:  # an alias
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            yield from _words(item, (*where, number), seen)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else "?"
            yield from _words(key, where, seen, is_key=True)
            yield from _words(value, (*where, name), seen)
