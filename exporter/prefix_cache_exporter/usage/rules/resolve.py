"""The record of a request, of which nothing more is expected, from all that its lines said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.usage.record import NOTHING, Quarantined, UsageRecord

from .parts import with_parts
from .reading import Reading, read, unknown
from .ttl import by_ttl

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prefix_cache_exporter.usage.maps.model import UsageMap
    from prefix_cache_exporter.usage.record import Fragment


def resolve(
    fragment: Fragment, usage_map: UsageMap, override: bool | None, open_end: bool = False
) -> UsageRecord | Quarantined:
    """The record of a request of which nothing more is expected.

    Args:
        fragment: all that its lines said.
        usage_map: the facts of its format.
        override: `input_includes_cache` of the source's configuration.
        open_end: whether it was cut off before its final output count.
    """
    f = fragment
    status = f.status or ("incomplete" if open_end else usage_map.default_status)
    if f.replay:
        return _record(f, usage_map, status, unknown("served_from_gateway_cache"))
    if f.bad and "input" in f.bad:
        return Quarantined(f"input_{f.bad['input']}", f.raw)
    if not f.seen or (status != "success" and not any((f.input, f.output, f.total, f.read, f.write))):
        # A gateway writes zeros for a request that never came to be counted.
        return _record(f, usage_map, status, unknown("usage_missing", "no_usage"))
    reading, anomalies = read(f, usage_map, override), []
    # Reasoning inside the output is in no sum; a total that it would have explained is an anomaly of its own.
    bad = [name for name in f.bad or () if name != "reasoning" or usage_map.reasoning_outside]
    if bad and f.bad:
        anomalies += [f"{name}_{f.bad[name]}" for name in bad]
        reading = reading._replace(quality="anomaly")
    quality = reading.quality
    if open_end and quality in {"ok", "derived", "override"}:
        quality = "partial"
    if usage_map.inferred and quality == "ok":
        quality = "derived"
    split, mismatch = by_ttl(reading.write, f.split)
    if mismatch:
        anomalies.append("ttl_split_mismatch")
        quality = "anomaly"
    reading = reading._replace(quality=quality, anomalies=(*reading.anomalies, *anomalies))
    record = _record(f, usage_map, status, reading, split)
    return with_parts(record, f.parts, usage_map) if f.parts else record


def _record(
    f: Fragment, usage_map: UsageMap, status: str, reading: Reading, split: Mapping[str, int] = NOTHING
) -> UsageRecord:
    return UsageRecord(
        f.id,
        usage_map.format,
        f.provider or usage_map.provider,
        f.model,
        f.time,
        status,
        reading.quality,
        (*reading.anomalies, "bad_time") if f.bad_time and f.time is None else reading.anomalies,
        reading.total,
        reading.read,
        reading.write,
        split,
        reading.uncached,
        reading.output,
        f.ttft,
        f.duration,
        f.attempt or "first",
        f.tier,
        f.batch,
        (),
        f.extra or NOTHING,
    )
