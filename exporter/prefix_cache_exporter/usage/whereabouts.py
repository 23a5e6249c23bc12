"""Why a path of a map leads to nothing in a record, in words of the map; none of the record's text.

For whoever writes a map: which step of it fails, and what stands there instead of an object.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from .conditions import first
from .events import is_events
from .extract.tokens import says_nothing, usage_object
from .normaliser import Normaliser
from .paths import MISSING, Path
from .record import Fragment
from .reprs import from_repr, items
from .unpack import packed_as
from .values import word

if TYPE_CHECKING:
    from .maps.model import UsageMap
    from .paths import Step
    from .record import Skipped

_KINDS: Final = {bool: "a truth value", int: "a number", float: "a number", list: "a list", type(None): "null"}
_UNPACKED: Final = {"zstd": "is not unpacked"}


class Looking(Normaliser):
    """A normaliser that says beside each item of a line why it has no input tokens.

    Attributes:
        strange: requests with usage whose status is a word that the map does not know, by where it stands; only where
            the map says which words stand for a success, and not of failures alone.
    """

    def __init__(self, usage_map: UsageMap) -> None:
        super().__init__(usage_map)
        self._why: dict[int, str | None] = {}
        self._whole: dict[int, Any] = {}
        self.strange: Counter[tuple[Path, ...]] = Counter()

    def look(self, line: bytes) -> list[tuple[Fragment | Skipped, str | None]]:
        """What one line says, one item per record in it, each with what is to be said of it."""
        self._why.clear()
        self._whole.clear()
        return [(item, self._why.get(id(item))) for item in self.feed(line)]

    def feed_decoded(self, line: Any) -> tuple[Fragment | Skipped, ...]:
        """See `Normaliser`."""
        self._whole |= {id(item): item for item in (line if isinstance(line, list) else (line,))}
        return super().feed_decoded(line)

    def _finished(self, record: Any) -> Fragment | Skipped:
        item = super()._finished(record)
        asked = isinstance(item, Fragment) or item.reason == "not_json"
        why = why_nothing(record, self.usage_map) if asked else None
        if why is not None and id(record) in self._whole:
            why += _nor_records(record, self.usage_map)
        self._why[id(item)] = why
        if isinstance(item, Fragment) and item.seen and item.status is None:
            usage = usage_object(record, self.usage_map)
            self.strange.update(
                rule.paths
                for rule in self.usage_map.status
                if rule.condition is None
                and self.usage_map.default_status in rule.values.values()
                and word(first(rule.paths, record, usage))
            )
        return item


def why_nothing(record: Any, usage_map: UsageMap) -> str | None:
    """Why a record has no input tokens for a map; None where it has them, or nothing can be said."""
    if not isinstance(record, dict):
        return None
    usage = usage_object(record, usage_map)
    if usage is None:
        return _furthest(usage_map.usage, record, "")
    paths = usage_map.tokens.get("input", ())
    value = first(paths, record, usage)
    if value is not None:
        return f"what stands there is {value.strip() or 'empty'}" if says_nothing(value) else None
    of_usage = [path for path in paths if not path.absolute]
    holder = next((path for path in usage_map.usage if isinstance(path.get(record), dict | str)), None)
    if of_usage:
        return _furthest(tuple(of_usage), usage, str(holder or "$"), number=True)
    return _furthest(paths, record, "", number=True)


def _nor_records(line: Any, usage_map: UsageMap) -> str:
    """What to add for a line in which no records stand where the map looks for them; nothing where it is one itself."""
    usage = usage_object(line, usage_map)
    stands = [
        path for path in usage_map.tokens.get("input", ()) if path.get(line if path.absolute else usage) is not MISSING
    ]
    paths = usage_map.each
    if stands or not paths:
        return ""
    return f", nor anything at {paths[0]}{f' or {len(paths) - 1} more' if len(paths) > 1 else ''}"


def _furthest(paths: tuple[Path, ...], root: Any, of: str, *, number: bool = False) -> str | None:
    """What is wrong with the path that leads furthest."""
    found = [_walked(path, root, of, number=number) for path in paths]
    return max(found, key=lambda one: one[0], default=(0, None))[1]


def _walked(path: Path, root: Any, of: str, *, number: bool) -> tuple[float, str | None]:
    """How far a path leads, and why no further."""
    for depth in range(len(path.steps) + 1):
        value = Path(path.steps[:depth], path.absolute).get(root)
        outer = Path(path.steps[: depth - 1], path.absolute).get(root) if depth else None
        if value is MISSING:
            said = _missing(path, depth - 1, outer, of)
            return depth - 1 + (0.5 if said[1] else 0), said[0]
        if depth and (not isinstance(value, dict | list) or depth == len(path.steps)):
            if isinstance(value, str) and depth < len(path.steps) and from_repr(value):
                continue
            where = _shown(path, depth, of)
            null = value is None and number and depth == len(path.steps)
            return depth, f"{where} is null" if null else _kind_of(value, where)
    return 0, None


def _missing(path: Path, depth: int, holder: Any, of: str) -> tuple[str, bool]:
    """What to say of a step that leads nowhere, and whether the key that was meant is there."""
    step, rest = path.steps[depth], path.steps[depth:]
    where = _shown(path, depth, of)
    if isinstance(holder, dict) and isinstance(step, str):
        joined = ".".join(str(one) for one in rest)
        if len(rest) > 1 and joined in holder:
            return f"{where} has one key '{joined}' with dots in it: quote it", True
        alike = next((key for key in holder if isinstance(key, str) and _plain(key) == _plain(step)), None)
        if alike is not None:
            return f"{where} has {alike}, not {step}", True
    if isinstance(holder, list) and isinstance(step, str):
        return f"{where} is a list, not an object", False
    return f"{where} has no {_step(step)}", False


def _shown(path: Path, depth: int, of: str) -> str:
    """A path as far as it led."""
    if not path.absolute:
        inner = str(Path(path.steps[:depth], absolute=False))
        return f"{inner or 'the object'} at {of}" if of else inner
    return str(Path(path.steps[:depth], absolute=True)) if depth else "the line"


def _step(step: Step) -> str:
    return step if isinstance(step, str) else f"item {step}"


def _plain(key: str) -> str:
    return re.sub(r"[\s_.-]", "", key).casefold()


def _kind_of(value: Any, where: str) -> str | None:
    """What stands where an object was expected; None for one."""
    if isinstance(value, dict):
        return f"{where} is an object without what is looked for" if not value else None
    if not isinstance(value, str):
        return f"{where} is {_KINDS.get(type(value), 'something else')}, not an object"
    if not value:
        return f"{where} is empty"
    if is_events(value) and len(items(value)) > 1:
        return f"{where} is a text of several server-sent events, which each: {where}[*] takes apart"
    packed = packed_as(value)
    if packed is not None:
        return f"{where} is base64 of {packed}, which {_UNPACKED.get(packed, f'decode: {where} unpacks')}"
    return None if from_repr(value) else f"{where} is text, not an object or JSON of one"
