"""What one record says, as a fragment of the request that it is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from prefix_cache_exporter.usage.conditions import first
from prefix_cache_exporter.usage.events import is_events, is_framing
from prefix_cache_exporter.usage.record import Fragment, Part, Skipped
from prefix_cache_exporter.usage.values import word

from .envelope import read_envelope
from .tokens import numbers, read_tokens, usage_object, written_by_ttl

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prefix_cache_exporter.usage.maps.model import UsageMap
    from prefix_cache_exporter.usage.paths import Path

_KINDS = {str: "text", int: "a number", float: "a number", bool: "a truth value", list: "a list"}


def extract(record: Any, usage_map: UsageMap, fields: Mapping[str, Path]) -> Fragment | Skipped:
    """What one record says. The caller adds key, id and status where the source's configuration has a say."""
    if not isinstance(record, dict):
        return Skipped("lost", "not_an_object", f"got {_KINDS.get(type(record), 'null')}, expected an object")
    usage = usage_object(record, usage_map)
    for context in usage_map.context:
        if context.condition.holds(record, usage):
            found = {name: word(first(paths, record, usage)) for name, paths in context.sets.items()}
            return Fragment(context={name: value for name, value in found.items() if value})
    skipped = _skipped(record, usage, usage_map)
    if skipped is not None:
        return skipped
    fragment = Fragment()
    read_tokens(fragment, record, usage, usage_map)
    read_envelope(fragment, record, usage, usage_map)
    skipped = None if fragment.seen or fragment.status is not None else _text_instead(record, usage_map)
    if skipped is not None:
        return skipped
    fragment.parts, problem = _parts(record, usage, usage_map)
    if problem is not None:
        fragment.bad = {**(fragment.bad or {}), "part": problem}
    if usage_map.last:
        last = first(usage_map.last, record, usage)
        if isinstance(last, dict):
            fragment.last = numbers(record, last, usage_map)[0]
    if fields:
        found = {name: word(path.get(record if path.absolute else usage)) for name, path in fields.items()}
        fragment.extra = {name: value for name, value in found.items() if value} or None
    return fragment


def _text_instead(record: dict[str, Any], usage_map: UsageMap) -> Skipped | None:
    """What became of a line whose envelope holds text, and of which nothing says that it was a request."""
    held = None if usage_map.placed is None else usage_map.placed.get(record)
    text = held.strip() if isinstance(held, str) else ""
    if not text or is_events(text) or text.startswith("{'"):
        return None
    if text[0] in "{[":
        try:
            msgspec.json.decode(text)
        except (ValueError, RecursionError):
            return Skipped("lost", "not_json", f"got broken JSON at {usage_map.placed}, expected an object")
        return None
    if usage_map.text != "lost":
        return Skipped("ignored", "text")
    return Skipped("lost", "not_json", f"got text at {usage_map.placed}, expected an object or JSON of one")


def _skipped(record: dict[str, Any], usage: Any, usage_map: UsageMap) -> Skipped | None:
    """What became of a record that its map's own rules say is none; None where it is one."""
    for condition, what in usage_map.foreign:
        if condition.holds(record, usage):
            return Skipped("lost", "other_format", f"got {what}, expected {usage_map.title or usage_map.format}")
    if usage is None and usage_map.placed is not None:
        held = usage_map.placed.get(record)
        if isinstance(held, str) and is_framing(held.strip()):
            return Skipped("ignored", "event_stream_framing")
    for condition, reason in usage_map.skip:
        if condition.holds(record, usage):
            return Skipped("ignored", reason)
    return None


def _parts(record: Any, usage: Any, usage_map: UsageMap) -> tuple[list[Part] | None, str | None]:
    """The calls beside the usage object's own numbers, and what is wrong with one of theirs if anything is."""
    rule = usage_map.parts
    items = first(rule.at, record, usage) if rule is not None else None
    if rule is None or not isinstance(items, list):
        return None, None
    parts, problem = [], None
    for item in items:
        kind = item.get(rule.kind) if isinstance(item, dict) else None
        if isinstance(kind, str) and (kind in rule.add or kind in rule.unclear):
            found, bad = numbers(record, item, usage_map)
            split, bad_split = written_by_ttl(record, item, usage_map)
            problem = next(iter(bad.values()), None) or bad_split or problem
            model = word(item.get(rule.model))
            read, write = found.get("read"), found.get("write")
            parts.append(Part(kind, model, found.get("input"), found.get("output"), read, write, split))
    return parts or None, problem
