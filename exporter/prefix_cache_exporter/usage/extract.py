"""From a decoded line to what it says, for any shape that a map can describe.

This is the general way: it looks every path up in decoded JSON and never raises, whatever the line holds. `typed.py`
does the same for plain lines faster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from .conditions import Some, first
from .paths import MISSING, Path
from .record import TTLS, Fragment, Part, Skipped
from .reprs import from_repr
from .values import duration, seconds_since_epoch, tokens, word

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .maps.model import Span, UsageMap

_OTLP_VALUES = ("stringValue", "intValue", "doubleValue", "boolValue")
_MOST_RAW = 64
_BEYOND = 2**63  # what neither the state nor a reader of the quarantine file holds
_KINDS = {str: "text", int: "a number", float: "a number", bool: "a truth value", list: "a list"}
_NOT_REPORTED = frozenset({"", "-", "null", "none", "n/a"})
"""Text for nothing: exports of tables, and access logs."""


def records(line: Any, usage_map: UsageMap) -> Iterator[Any]:
    """The records within a decoded line; what is no object comes out as it is."""
    for given in line if isinstance(line, list) else (line,):
        item = _unwrapped(given)
        for path in usage_map.decode:
            _replace(item, path, _from_text)
        found: list[Any] = []
        for path in usage_map.each:
            found = list(_within(item, path, usage_map.inherit))
            if found:
                break
        if not found and _is_container(item, usage_map):
            continue
        for record in map(_object, found) if found else (item,):
            for path in usage_map.attributes:
                _replace(record, path, _from_attributes)
            yield record


def _unwrapped(item: Any) -> Any:
    """What a program wrote, of a line as Docker's json-file driver stores it: `{"log": …, "stream": …, "time": …}`."""
    if isinstance(item, dict) and isinstance(item.get("log"), str) and item.get("stream") in {"stdout", "stderr"}:
        text = item["log"].strip()
        try:
            return msgspec.json.decode(text)
        except (ValueError, RecursionError):
            return text
    return item


def _is_container(item: Any, usage_map: UsageMap) -> bool:
    """Whether a line is there to hold records, be it none: a page, an export, not a record with an empty list."""
    return (
        isinstance(item, dict)
        and any(
            isinstance(step, str) and isinstance(item.get(step), list)
            for step in (path.steps[0] for path in usage_map.each)
        )
        and not any(path.steps and isinstance(path.get(item), dict) for path in usage_map.usage)
    )


def _object(item: Any) -> Any:
    """A record within a line, also where it stands there as text."""
    return (from_repr(item) or item) if isinstance(item, str) else item


def _within(item: Any, path: Path, inherit: tuple[str, ...]) -> Iterator[Any]:
    """The values at a path with `[*]`, objects with what they inherit from those around them."""
    levels: list[tuple[Any, dict[str, Any]]] = [(item, {})]
    for step in path.steps:
        below = []
        for value, given in levels:
            taken = (
                {**given, **{key: value[key] for key in inherit if key in value}} if isinstance(value, dict) else given
            )
            below += [(inner, taken) for inner in Path((step,), absolute=True).each(value)]
        levels = below
    for value, given in levels:
        yield {**given, **value} if isinstance(value, dict) and given else value


def extract(record: Any, usage_map: UsageMap, fields: Mapping[str, Path]) -> Fragment | Skipped:
    """What one record says. The caller adds key, id and status where the source's configuration has a say."""
    if not isinstance(record, dict):
        return Skipped("lost", "not_an_object", f"got {_KINDS.get(type(record), 'null')}, expected an object")
    usage = usage_object(record, usage_map)
    for context in usage_map.context:
        if context.condition.holds(record, usage):
            found = {name: word(first(paths, record, usage)) for name, paths in context.sets.items()}
            return Fragment(context={name: value for name, value in found.items() if value})
    for condition, reason in usage_map.skip:
        if condition.holds(record, usage):
            return Skipped("ignored", reason)
    fragment = Fragment()
    _tokens(fragment, record, usage, usage_map)
    _envelope(fragment, record, usage, usage_map)
    fragment.parts, problem = _parts(record, usage, usage_map)
    if problem is not None:
        fragment.bad = {**(fragment.bad or {}), "part": problem}
    if usage_map.last:
        last = first(usage_map.last, record, usage)
        if isinstance(last, dict):
            fragment.last = _numbers(record, last, usage_map)[0]
    if fields:
        found = {name: word(path.get(record if path.absolute else usage)) for name, path in fields.items()}
        fragment.extra = {name: value for name, value in found.items() if value} or None
    return fragment


def numbers_only(usage: Any, depth: int = 4) -> dict[str, Any]:
    """A usage object without its text, for a quarantine file: numbers, null and truth values under their keys."""
    kept: dict[str, Any] = {}
    if isinstance(usage, dict) and depth:
        for key, value in list(usage.items())[:_MOST_RAW]:
            if isinstance(value, dict):
                kept[key] = numbers_only(value, depth - 1)
            elif value is None or isinstance(value, float) or (isinstance(value, int) and abs(value) < _BEYOND):
                kept[key] = value
    return kept


def usage_object(record: dict[str, Any], usage_map: UsageMap) -> Any:
    """The usage object of a record: the first that is one, or the text of one."""
    for path in usage_map.usage:
        value = path.get(record)
        if isinstance(value, dict):
            return value
        if isinstance(value, str) and (found := from_repr(value)):
            return found
    return None


def _numbers(record: Any, usage: Any, usage_map: UsageMap) -> tuple[dict[str, int], dict[str, str]]:
    found, bad = {}, {}
    for name, paths in usage_map.tokens.items():
        value = _reported(paths, record, usage)
        if value is not None:
            count, problem = tokens(value)
            if count is not None:
                found[name] = count
            elif problem is not None:
                bad[name] = problem
    return found, bad


def _reported(paths: tuple[Path, ...], record: Any, usage: Any) -> Any:
    """The first value at the paths that says anything."""
    for path in paths:
        value = path.get(record if path.absolute else usage)
        if value is None or value is MISSING or (isinstance(value, str) and value.strip().casefold() in _NOT_REPORTED):
            continue
        if isinstance(value, dict) and _holds(path, paths):
            continue
        return value
    return None


def _holds(path: Path, paths: tuple[Path, ...]) -> bool:
    """Whether another spelling lies within what a path leads to: an object there is where that one was looked for."""
    depth = len(path.steps)
    return any(len(other.steps) > depth and other.steps[:depth] == path.steps for other in paths)


def _split(record: Any, usage: Any, usage_map: UsageMap) -> tuple[dict[str, int] | None, str | None]:
    split: dict[str, int] = {}
    values = [(ttl, _reported(paths, record, usage)) for ttl, paths in usage_map.write_by_ttl.items()]
    if usage_map.write_list is not None:
        items = first(usage_map.write_list.at, record, usage)
        for item in items if isinstance(items, list) else ():
            if isinstance(item, dict):
                ttl = item.get(usage_map.write_list.ttl)
                values.append((ttl if ttl in TTLS else "unknown", item.get(usage_map.write_list.tokens)))
    for ttl, value in values:
        if value is None or value is MISSING:
            continue
        count, problem = tokens(value)
        if count is None:
            return None, problem
        split[ttl] = split.get(ttl, 0) + count
    return split or None, None


def _tokens(fragment: Fragment, record: Any, usage: Any, usage_map: UsageMap) -> None:
    found, bad = _numbers(record, usage, usage_map)
    for name, count in found.items():
        setattr(fragment, name, count)
    fragment.split, problem = _split(record, usage, usage_map)
    if problem is not None:
        bad["ttl_split"] = problem
    fragment.bad = bad or None
    fragment.seen = bool(found or bad or fragment.split)
    for rule in usage_map.rules if fragment.seen else ():
        if rule.condition.holds(record, usage):
            fragment.rule, fragment.total_ignored = rule.rule, rule.total_ignored
            break
    if isinstance(usage_map.gateway, Some) and usage_map.gateway.holds(record, usage):
        fragment.gateway = True


def _envelope(fragment: Fragment, record: Any, usage: Any, usage_map: UsageMap) -> None:
    fragment.id = _word(usage_map.id, record, usage)
    fragment.model = _word(usage_map.model, record, usage)
    if usage_map.provider_paths:
        fragment.provider = provider_name(_word(usage_map.provider_paths, record, usage), usage_map)
    moment = first(usage_map.time, record, usage)
    if moment is not None:
        fragment.time = seconds_since_epoch(moment)
        fragment.bad_time = fragment.time is None
    fragment.status = _status(record, usage, usage_map)
    fragment.tier = _word(usage_map.service_tier, record, usage)
    batch = usage_map.batch
    fragment.batch = (batch.holds(record, usage) or None) if isinstance(batch, Some) else batch
    if usage_map.retry.holds(record, usage):
        fragment.attempt = "retry"
    fragment.replay = usage_map.replay.holds(record, usage) or None
    fragment.ttft = _span(usage_map.ttft, record, usage)
    fragment.duration = _span(usage_map.duration, record, usage)
    stream = usage_map.stream
    if stream is not None:
        fragment.starts = stream.starts.holds(record, usage)
        fragment.closed = stream.closed.holds(record, usage)
        fragment.complete = stream.complete.holds(record, usage)


def _word(paths: tuple[Path, ...], record: Any, usage: Any) -> str | None:
    """The first name at the paths that is not empty: LiteLLM has logged empty ids."""
    for path in paths:
        value = path.get(record if path.absolute else usage)
        if value is not None and value is not MISSING:
            text = word(value)
            if text:
                return text
    return None


def provider_name(raw: str | None, usage_map: UsageMap) -> str | None:
    """What a record calls its provider, as it is called here."""
    if raw is None:
        return None
    name = raw.casefold()
    known = usage_map.provider_names.get(name)
    if known is not None:
        return known
    for pattern, meant in usage_map.provider_names.items():
        if pattern.endswith("*") and name.startswith(pattern[:-1]):
            return meant
    return name


def _status(record: Any, usage: Any, usage_map: UsageMap) -> str | None:
    for rule in usage_map.status:
        if rule.condition is None:
            value = word(first(rule.paths, record, usage))
            status = rule.values.get(value.casefold()) if value else None
            if status is not None:
                return status
        elif rule.condition.holds(record, usage):
            return rule.status
    return None


def _span(spans: tuple[Span, ...], record: Any, usage: Any) -> float | None:
    for span in spans:
        if span.path is not None:
            value = span.path.get(record if span.path.absolute else usage)
            found = None if value is None or value is MISSING else duration(value, span.unit)
        else:
            start = seconds_since_epoch(first(span.start, record, usage))
            end = seconds_since_epoch(first(span.end, record, usage))
            found = end - start if start is not None and end is not None and end >= start else None
            if span.before and (
                end is None or (limit := seconds_since_epoch(first(span.before, record, usage))) is None or end >= limit
            ):
                found = None
        if found is not None:
            return found
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
            found, bad = _numbers(record, item, usage_map)
            split, bad_split = _split(record, item, usage_map)
            problem = next(iter(bad.values()), None) or bad_split or problem
            model = word(item.get(rule.model))
            read, write = found.get("read"), found.get("write")
            parts.append(Part(kind, model, found.get("input"), found.get("output"), read, write, split))
    return parts or None, problem


def _replace(record: Any, path: Path, change: Any) -> None:
    """Puts a changed value where the path leads, in place: decoded lines belong to nobody else."""
    if not path.steps:
        return
    holder = Path(path.steps[:-1], path.absolute).get(record)
    step = path.steps[-1]
    if isinstance(holder, dict) and step in holder:
        holder[step] = change(holder[step])


def _from_text(value: Any) -> Any:
    return from_repr(value) if isinstance(value, str) else value


def _from_attributes(value: Any) -> Any:
    """`[{key, value: {intValue: "12"}}]` as `{key: "12"}`, https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding."""
    if not isinstance(value, list):
        return value
    found = {}
    for item in value:
        if isinstance(item, dict) and isinstance(item.get("key"), str):
            held = item.get("value")
            if isinstance(held, dict):
                held = next((held[kind] for kind in _OTLP_VALUES if kind in held), held)
            found[item["key"]] = held
    return found
