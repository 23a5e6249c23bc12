"""What a record says around its numbers: whose it is, when it was, how it ended, how long it took."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prefix_cache_exporter.usage.conditions import Some, first
from prefix_cache_exporter.usage.paths import MISSING, Path
from prefix_cache_exporter.usage.values import duration, seconds_since_epoch, word

if TYPE_CHECKING:
    from prefix_cache_exporter.usage.maps.model import Span, UsageMap
    from prefix_cache_exporter.usage.record import Fragment


def read_envelope(fragment: Fragment, record: Any, usage: Any, usage_map: UsageMap) -> None:
    """Takes into a fragment what stands around a record's numbers."""
    fragment.id = _word(usage_map.id, record, usage)
    fragment.model = _word(usage_map.model, record, usage)
    if usage_map.provider_paths:
        fragment.provider = provider_name(_word(usage_map.provider_paths, record, usage), usage_map)
    moment = first(usage_map.time, record, usage)
    if moment is not None:
        fragment.time = seconds_since_epoch(moment)
        fragment.bad_time = fragment.time is None
    fragment.status = _status(record, usage, usage_map)
    named = (tier for condition, tier in usage_map.tier_when if condition.holds(record, usage))
    fragment.tier = next(named, None) or _word(usage_map.service_tier, record, usage)
    batch = usage_map.batch
    fragment.batch = (batch.holds(record, usage) or None) if isinstance(batch, Some) else batch
    if usage_map.retry.holds(record, usage):
        fragment.attempt = "retry"
    fragment.replay = usage_map.replay.holds(record, usage) or None
    fragment.ttft = _span(usage_map.ttft, record, usage)
    fragment.duration = _span(usage_map.duration, record, usage)
    fragment.own = usage_map.own.holds(record, usage)
    stream = usage_map.stream
    if stream is not None:
        fragment.adds = stream.adds.holds(record, usage)
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
        if span.condition is not None and not span.condition.holds(record, usage):
            continue
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
