"""A request's numbers as its additive rule reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .additive import BY_TOTAL, EXCLUSIVE, INCLUSIVE, WRITE_OUTSIDE, choose, fit_total

if TYPE_CHECKING:
    from prefix_cache_exporter.usage.maps.model import UsageMap
    from prefix_cache_exporter.usage.record import Fragment


class Reading(NamedTuple):
    """Numbers under the rule that was found for them."""

    total: int | None
    read: int | None
    write: int | None
    uncached: int | None
    output: int | None
    quality: str
    anomalies: tuple[str, ...]


def read(f: Fragment, usage_map: UsageMap, override: bool | None) -> Reading:
    """Applies the additive rule to the numbers of a request."""
    rule = f.rule or usage_map.rule
    write = f.write
    if f.split and (write is None or (usage_map.write_is_split and any(f.split.values()))):
        write = sum(f.split.values())
    reads = f.read
    if f.input is None:
        return _without_input(f, usage_map, write)
    belied = False
    if reads is None and f.uncached is not None and rule != EXCLUSIVE and override is not False:
        reads = f.input - f.uncached - (write or 0)  # DeepSeek's miss: what is left of the prompt was hit
        belied = reads < 0
        reads = None if belied else reads
    fit = fit_total(
        f, usage_map, rule if override is None else INCLUSIVE if override else EXCLUSIVE, reads or 0, write or 0
    )
    if fit.output is None and usage_map.absent_output_is_zero and (fit.inclusive or f.total is None):
        fit = fit._replace(output=0)
    gateway = f.gateway if f.gateway is not None else usage_map.gateway is True
    anomalies: tuple[str, ...] = ()
    if override is not None:
        chosen, quality = INCLUSIVE if override else EXCLUSIVE, "override"
    else:
        chosen, quality, anomalies = choose(rule, fit, usage_map, gateway)
    if not usage_map.absent_cache_is_none and chosen == EXCLUSIVE and reads is None and not write:
        # Nothing says whether the model had a cache: what was not in the input may be missing altogether.
        return Reading(None, None, write, f.input, fit.output, "cache_unknown", anomalies)
    reading = _apply(chosen, quality, anomalies, f.input + fit.extra, reads, write, fit.output, usage_map)
    rest = reading.uncached
    if belied or (f.uncached is not None and rest is not None and f.uncached not in {rest, rest + (write or 0)}):
        # Some leave the writes in what they call uncached. Anything else belies the input, the reads or the writes.
        reading = reading._replace(quality="anomaly", anomalies=(*reading.anomalies, "uncached_mismatch"))
    return reading


def _apply(  # noqa: PLR0917  # the numbers of one reading
    rule: str,
    quality: str,
    anomalies: tuple[str, ...],
    base: int,
    reads: int | None,
    write: int | None,
    output: int | None,
    usage_map: UsageMap,
) -> Reading:
    cached = (reads or 0) + (write or 0)
    if rule == BY_TOTAL:
        return Reading(None, reads, write, None, output, quality, anomalies)
    if rule == EXCLUSIVE:
        return Reading(base + cached, reads, write, base, output, quality, anomalies)
    if reads is None and usage_map.absent_read_is_zero:
        reads = 0
    if write is None and usage_map.absent_write_is_zero:
        write = 0
    if rule == WRITE_OUTSIDE:
        return Reading(base + (write or 0), reads, write, base - (reads or 0), output, quality, anomalies)
    if cached > base:
        anomalies = anomalies if "cache_gt_input" in anomalies else (*anomalies, "cache_gt_input")
        return Reading(base, None, None, None, output, "anomaly", anomalies)
    if reads is None and not usage_map.absent_cache_is_none:
        quality = quality if quality == "anomaly" else "cache_unknown"
        return Reading(base, None, write, None, output, quality, anomalies)
    return Reading(base, reads, write, base - cached, output, quality, anomalies)


def _without_input(f: Fragment, usage_map: UsageMap, write: int | None) -> Reading:
    """A stream that was cut before it said how long the prompt was, or a source that gives its parts or total alone."""
    output = f.output
    if output is not None:
        output += f.extra_output or 0
        output += (f.reasoning or 0) if usage_map.reasoning_outside else 0
    if f.uncached is not None and f.read is not None:  # hits and misses alone: DeepSeek's own proxies leave the sum out
        return Reading(f.uncached + f.read + (write or 0), f.read, write, f.uncached, output, "derived", ())
    return Reading(None, f.read, write, f.uncached, output, "partial", ())


def unknown(quality: str, *anomalies: str) -> Reading:
    """No numbers, and why."""
    return Reading(None, None, None, None, None, quality, anomalies)
