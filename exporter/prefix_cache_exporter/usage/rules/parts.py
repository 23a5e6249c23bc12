"""Calls of a model that a request's usage object leaves out: added to its record, and priced one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from .additive import EXCLUSIVE
from .ttl import by_ttl

if TYPE_CHECKING:
    from prefix_cache_exporter.usage.maps.model import UsageMap
    from prefix_cache_exporter.usage.record import Part, UsageRecord


def with_parts(record: UsageRecord, parts: list[Part], usage_map: UsageMap) -> UsageRecord:
    """Adds the calls that the usage object leaves out, https://github.com/pydantic/pydantic-ai/issues/5065."""
    rule = usage_map.parts
    unclear = any(rule is not None and part.kind in rule.unclear for part in parts)
    added = [part for part in parts if rule is not None and part.kind in rule.add]
    anomalies = (*record.anomalies, "part_unclear") if unclear else record.anomalies
    whole = [part for part in added if _is_whole(part, usage_map)]
    if len(whole) < len(added):
        added = whole
        anomalies, record = (*anomalies, "part_incomplete"), replace(record, quality="anomaly")
    if not added:
        return replace(record, anomalies=anomalies)
    components = [replace(record, anomalies=()), *(_component(record, part, usage_map) for part in added)]
    split_sum: dict[str, int] = {}
    for component in components:
        for ttl, count in component.cache_write_by_ttl.items():
            split_sum[ttl] = split_sum.get(ttl, 0) + count
    return replace(
        record,
        anomalies=anomalies,
        total_input_tokens=_sum(components, "total_input_tokens"),
        cache_read_tokens=_sum(components, "cache_read_tokens"),
        cache_write_tokens=_sum(components, "cache_write_tokens"),
        cache_write_by_ttl=split_sum,
        uncached_input_tokens=_sum(components, "uncached_input_tokens"),
        output_tokens=_sum(components, "output_tokens"),
        components=tuple(components),
    )


def _component(record: UsageRecord, part: Part, usage_map: UsageMap) -> UsageRecord:
    """A call as a record of its own, of a part whose numbers are whole."""
    cached = (part.read or 0) + (part.write or 0)
    total = (part.input or 0) + (cached if usage_map.rule == EXCLUSIVE else 0)
    split, _ = by_ttl(part.write, part.split)
    return replace(
        record,
        model=part.model or record.model,
        total_input_tokens=total,
        cache_read_tokens=part.read,
        cache_write_tokens=part.write,
        cache_write_by_ttl=split,
        uncached_input_tokens=total - cached,
        output_tokens=part.output,
        anomalies=(),
    )


def _is_whole(part: Part, usage_map: UsageMap) -> bool:
    cached = (part.read or 0) + (part.write or 0)
    return part.input is not None and (usage_map.rule == EXCLUSIVE or cached <= part.input)


def _sum(components: list[UsageRecord], name: str) -> int | None:
    known = [count for component in components if (count := getattr(component, name)) is not None]
    return sum(known) if known else None
