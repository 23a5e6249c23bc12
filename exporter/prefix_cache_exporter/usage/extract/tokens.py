"""The numbers of a record's usage object, as its source reports them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prefix_cache_exporter.usage.conditions import Some, first
from prefix_cache_exporter.usage.paths import MISSING, Path
from prefix_cache_exporter.usage.record import TTLS, Fragment
from prefix_cache_exporter.usage.reprs import from_repr
from prefix_cache_exporter.usage.values import tokens

if TYPE_CHECKING:
    from prefix_cache_exporter.usage.maps.model import Modalities, UsageMap

_MOST_RAW = 64
_BEYOND = 2**63  # what neither the state nor a reader of the quarantine file holds
_NOT_REPORTED = frozenset({"", "-", "null", "none", "n/a"})
"""Text for nothing: exports of tables, and access logs."""


def usage_object(record: dict[str, Any], usage_map: UsageMap) -> Any:
    """The usage object of a record: the first that is one, or the text of one; an empty one where no other is."""
    empty = None
    for path in usage_map.usage:
        value = path.get(record)
        if isinstance(value, dict):
            if value:
                return value
            empty = value
        if isinstance(value, str) and (found := from_repr(value)):
            return found
    return empty


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


def read_tokens(fragment: Fragment, record: Any, usage: Any, usage_map: UsageMap) -> None:
    """Takes a record's numbers into a fragment, and the additive rule that it may have of its own."""
    found, bad = numbers(record, usage, usage_map)
    for name, count in found.items():
        setattr(fragment, name, count)
    fragment.split, problem = written_by_ttl(record, usage, usage_map)
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


def numbers(record: Any, usage: Any, usage_map: UsageMap) -> tuple[dict[str, int], dict[str, str]]:
    """The numbers of a usage object by name, and by name what is wrong with those that are no numbers of tokens."""
    found, bad = {}, {}
    for name, paths in usage_map.tokens.items():
        value = _reported(paths, record, usage)
        if value is not None:
            count, problem = tokens(value)
            if count is not None:
                found[name] = count
            elif problem is not None:
                bad[name] = problem
    if usage_map.read_parts and "read" not in found and "read" not in bad:
        parts, problem = _added(first(usage_map.read_parts, record, usage))
        if parts is not None:
            found["read"] = parts
        elif problem is not None:
            bad["read"] = problem
    if usage_map.modalities is not None:
        _add_modalities(found, bad, record, usage, usage_map.modalities)
    return found, bad


def _add_modalities(
    found: dict[str, int], bad: dict[str, str], record: Any, usage: Any, modalities: Modalities
) -> None:
    """Adds what stands of audio, images and the like beside the numbers; none is added to what nobody told."""
    for path in modalities.at:
        held = path.get(record if path.absolute else usage)
        if not isinstance(held, dict):
            if tokens(held)[0]:
                bad["modality"] = "not_split"  # of the input or the output: nobody says
            continue
        for name, key in modalities.keys.items():
            count, problem = tokens(held[key]) if held.get(key) is not None else (0, None)
            if problem is not None:
                bad["modality"] = problem
            elif count and (name in found or name == "read"):
                found[name] = found.get(name, 0) + count


def _added(parts: Any) -> tuple[int | None, str | None]:
    """The numbers among an object's members, added, and what is wrong with one of them; None where there is none.

    Text that is no number says something else, such as where the tokens came from.
    """
    total = None
    for value in parts.values() if isinstance(parts, dict) else ():
        count, problem = tokens(value)
        if problem is None:
            total = (total or 0) + (count or 0)
        elif problem != "not_a_number" or isinstance(value, float):
            return None, problem
    return total, None


def written_by_ttl(record: Any, usage: Any, usage_map: UsageMap) -> tuple[dict[str, int] | None, str | None]:
    """Writes by time to live, or what is wrong with them; None where nothing says."""
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


def says_nothing(value: Any) -> bool:
    """Whether a value is text for nothing."""
    return isinstance(value, str) and value.strip().casefold() in _NOT_REPORTED


def _reported(paths: tuple[Path, ...], record: Any, usage: Any) -> Any:
    """The first value at the paths that says anything."""
    for path in paths:
        value = path.get(record if path.absolute else usage)
        if value is None or value is MISSING or says_nothing(value):
            continue
        if isinstance(value, dict) and _holds(path, paths):
            continue
        return value
    return None


def _holds(path: Path, paths: tuple[Path, ...]) -> bool:
    """Whether another spelling lies within what a path leads to: an object there is where that one was looked for."""
    depth = len(path.steps)
    return any(len(other.steps) > depth and other.steps[:depth] == path.steps for other in paths)
