"""The records within a decoded line: of arrays, pages and exports, and of what log drivers wrap around them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prefix_cache_exporter.usage.events import is_events
from prefix_cache_exporter.usage.lenient import behind
from prefix_cache_exporter.usage.paths import Path
from prefix_cache_exporter.usage.reprs import from_repr
from prefix_cache_exporter.usage.unpack import unpacked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prefix_cache_exporter.usage.maps.model import UsageMap
    from prefix_cache_exporter.usage.paths import Step

_OTLP_VALUES = (
    *("stringValue", "intValue", "doubleValue", "boolValue"),
    *("string_value", "int_value", "double_value", "bool_value"),  # with protobuf's own names of fields
)


def records(item: Any, usage_map: UsageMap) -> Iterator[Any]:
    """The records within a decoded line, or an item of one; what is no object comes out as it is."""
    for path in usage_map.decode:
        _replace(item, path, unpacked)
    found: list[Any] = []
    for path in usage_map.each:
        found = [_object(inner) for inner in _within(item, path, usage_map)]
        if found:
            break
    if not found and _is_container(item, usage_map):
        return
    if usage_map.within is not None:
        found = [_put_back(item, usage_map.within.steps, record) for record in found]
    for record in found or (item,):
        if usage_map.text == "prefix" and usage_map.placed is not None:
            record = _without_prefix(record, usage_map.placed)  # noqa: PLW2901  # the same, looked into
        for path in usage_map.attributes:
            _replace(record, path, _from_attributes)
        yield record


def _without_prefix(record: Any, placed: Path) -> Any:
    """A record whose envelope holds text before the JSON, without the text."""
    held = placed.get(record)
    text = held.strip() if isinstance(held, str) else ""
    if not text or text[0] in "{[" or is_events(text):
        return record
    found = behind(text)
    return _put_back(record, placed.steps, found[0]) if found else record


def written(item: Any) -> str | None:
    """What a program wrote, of a line as Docker's json-file driver stores it: `{"log": …, "stream": …, "time": …}`."""
    if isinstance(item, dict) and isinstance(item.get("log"), str) and item.get("stream") in {"stdout", "stderr"}:
        text: str = item["log"]
        return text
    return None


def _put_back(line: Any, steps: tuple[Step, ...], record: Any) -> Any:
    """A line with one of its records where all of them were, so that paths of the line and of the record hold."""
    if not steps:
        return record
    held = from_repr(line) if isinstance(line, str) else line
    step, below = steps[0], _put_back(Path(steps[:1], absolute=True).get(line), steps[1:], record)
    if isinstance(held, list) and isinstance(step, int):
        return [below if at == step else item for at, item in enumerate(held)]
    return {**(held if isinstance(held, dict) else {}), step: below}


def _is_container(item: Any, usage_map: UsageMap) -> bool:
    """Whether a line is there to hold records, be it none: a page, an export, not a record with an empty list."""
    outer = () if usage_map.within is None else usage_map.within.steps
    holder = Path(outer, absolute=True).get(item)
    holder = from_repr(holder) if isinstance(holder, str) else holder
    return (
        isinstance(holder, dict)
        and any(
            isinstance(step, str) and isinstance(holder.get(step), list)
            for path in usage_map.each
            for step in path.steps[len(outer) : len(outer) + 1]
        )
        and not any(len(path.steps) > len(outer) and isinstance(path.get(item), dict) for path in usage_map.usage)
    )


def _object(item: Any) -> Any:
    """A record within a line, also where it stands there as text."""
    return (from_repr(item) or item) if isinstance(item, str) else item


def _within(item: Any, path: Path, usage_map: UsageMap) -> Iterator[Any]:
    """The values at a path with `[*]`, objects with what they inherit from those around them.

    A list among them is looked into by number, as `$[1]`, where the map does so.
    """
    inherit = usage_map.inherit
    levels: list[tuple[Any, dict[str, Any]]] = [(item, {})]
    for step in path.steps:
        below = []
        for value, given in levels:
            taken = (
                {**given, **{key: value[key] for key in inherit if key in value}} if isinstance(value, dict) else given
            )
            below += [(inner, taken) for inner in Path((step,), absolute=True).each(value)]
        levels = below
    for found, given in levels:
        value = dict(enumerate(found)) if usage_map.rows and isinstance(found, list) else found
        yield {**given, **value} if isinstance(value, dict) and given else value


def _replace(record: Any, path: Path, change: Any) -> None:
    """Puts a changed value where the path leads, in place: decoded lines belong to nobody else."""
    if not path.steps:
        return
    holder = Path(path.steps[:-1], path.absolute).get(record)
    step = path.steps[-1]
    if isinstance(holder, dict) and step in holder:
        holder[step] = change(holder[step])


def _from_attributes(value: Any) -> Any:
    """`[{key, value: {intValue: "12"}}]` as `{key: "12"}`, https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding."""
    if not isinstance(value, list):
        return value
    found = {}
    for item in value:
        if isinstance(item, dict) and isinstance(item.get("key"), str):
            held = item.get("value")
            if isinstance(held, dict):
                held = next((held[kind] for kind in _OTLP_VALUES if kind in held), held or None)
            found[item["key"]] = held
    return found
