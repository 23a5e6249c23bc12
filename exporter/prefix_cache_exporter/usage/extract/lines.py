"""The records within a decoded line: of arrays, pages and exports, and of what log drivers wrap around them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from prefix_cache_exporter.usage.paths import Path
from prefix_cache_exporter.usage.reprs import from_repr

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prefix_cache_exporter.usage.maps.model import UsageMap

_OTLP_VALUES = ("stringValue", "intValue", "doubleValue", "boolValue")


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
