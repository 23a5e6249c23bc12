"""From what a source reports to what it means: the additive rule, reconciled with the reported total.

INCLUSIVE: the input number holds reads and writes.  uncached = input - read - write, total = input.
EXCLUSIVE: it holds neither.                         uncached = input, total = input + read + write.

The total tells the two apart where they differ. Where read + write exceed an inclusive input, the total may still say
which of two things happened; where it equals input + output, only the source does: a provider's own numbers are then
inconsistent (https://community.openai.com/t/1330187), a gateway's leave the cached tokens out
(https://github.com/earendil-works/pi/issues/2048).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from .record import NOTHING, Quarantined, UsageRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .maps.model import UsageMap
    from .record import Fragment, Part

INCLUSIVE, EXCLUSIVE, WRITE_OUTSIDE, BY_TOTAL = "inclusive", "exclusive", "write_outside", "by_total"


class Reading(NamedTuple):
    """Numbers under the rule that was found for them."""

    total: int | None
    read: int | None
    write: int | None
    uncached: int | None
    output: int | None
    quality: str
    anomalies: tuple[str, ...]


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
        return _record(f, usage_map, status, _unknown("served_from_gateway_cache"))
    if f.bad and "input" in f.bad:
        return Quarantined(f"input_{f.bad['input']}", f.raw)
    if not f.seen or (status != "success" and not any((f.input, f.output, f.total, f.read, f.write))):
        # A gateway writes zeros for a request that never came to be counted.
        return _record(f, usage_map, status, _unknown("usage_missing", "no_usage"))
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
    return _with_parts(record, f.parts, usage_map) if f.parts else record


def read(f: Fragment, usage_map: UsageMap, override: bool | None) -> Reading:
    """Applies the additive rule to the numbers of a request."""
    rule = f.rule or usage_map.rule
    write = f.write
    if f.split and (write is None or (usage_map.write_is_split and any(f.split.values()))):
        write = sum(f.split.values())
    reads = f.read
    if f.input is None:
        return _without_input(f, usage_map, write)
    if reads is None and f.uncached is not None and rule != EXCLUSIVE and override is not False:
        reads = f.input - f.uncached - (write or 0)  # DeepSeek's miss: what is left of the prompt was hit
        reads = reads if reads >= 0 else None
    fit = _fit(f, usage_map, rule if override is None else INCLUSIVE if override else EXCLUSIVE, reads or 0, write or 0)
    gateway = f.gateway if f.gateway is not None else usage_map.gateway is True
    anomalies: tuple[str, ...] = ()
    if override is not None:
        chosen, quality = INCLUSIVE if override else EXCLUSIVE, "override"
    else:
        chosen, quality, anomalies = _choose(rule, fit, usage_map, gateway)
    if not usage_map.absent_cache_is_none and chosen == EXCLUSIVE and reads is None and not write:
        # Nothing says whether the model had a cache: what was not in the input may be missing altogether.
        return Reading(None, None, write, f.input, fit.output, "cache_unknown", anomalies)
    reading = _apply(chosen, quality, anomalies, f.input + fit.extra, reads, write, fit.output, usage_map)
    rest = reading.uncached
    if f.uncached is not None and rest is not None and f.uncached not in {rest, rest + (write or 0)}:
        # Some leave the writes in what they call uncached. Anything else belies the input, the reads or the writes.
        reading = reading._replace(quality="anomaly", anomalies=(*reading.anomalies, "uncached_mismatch"))
    return reading


class Fit(NamedTuple):
    """How the reported total agrees with each rule, and which of the optional numbers it holds."""

    known: bool
    inclusive: bool
    exclusive: bool
    write_outside: bool
    cached: int
    written: int
    input: int
    extra: int
    output: int | None


def _fit(f: Fragment, usage_map: UsageMap, rule: str, reads: int, write: int) -> Fit:
    """Tries the readings of reasoning and tool tokens: the rule's own fit, any fit, the usual one."""
    base, output = f.input or 0, f.output
    more = f.extra_output or 0
    reasoning = f.reasoning or 0
    outsides = (
        (usage_map.reasoning_outside, not usage_map.reasoning_outside) if reasoning else (usage_map.reasoning_outside,)
    )
    extras = (f.extra_input, 0) if f.extra_input else (0,)
    reported = None if (usage_map.total_ignored if f.total_ignored is None else f.total_ignored) else f.total
    best, best_rank = None, 3
    for extra in extras:
        for outside in outsides:
            outs = (
                None
                if output is None and not (outside and reasoning)
                else (output or 0) + (reasoning if outside else 0) + more
            )
            left = None if reported is None else reported - (outs or 0)
            total = base + extra
            inclusive, exclusive = left == total, left == total + reads + write
            beside = left == total + write
            fit = Fit(reported is not None, inclusive, exclusive, beside, reads, write, total, extra, outs)
            rank = 0 if (exclusive if rule == EXCLUSIVE else inclusive) else 1 if inclusive or exclusive else 2
            if best is None or rank < best_rank:
                best, best_rank = fit, rank
    assert best is not None  # noqa: S101  # for mypy: there is always a first reading
    return best


def _choose(  # noqa: PLR0911  # one line per case
    rule: str, fit: Fit, usage_map: UsageMap, gateway: bool
) -> tuple[str, str, tuple[str, ...]]:
    """The rule to apply, the quality that follows, and what was odd."""
    cached = fit.cached + fit.written
    only_inclusive = fit.known and fit.inclusive and not fit.exclusive
    only_exclusive = fit.known and fit.exclusive and not fit.inclusive
    neither = fit.known and not fit.inclusive and not fit.exclusive
    odd = ("sum_ne_total",) if neither else ()
    if rule == BY_TOTAL:
        return _by_total(fit, only_inclusive, only_exclusive, usage_map)
    if rule == EXCLUSIVE:
        if only_inclusive and cached <= fit.input:
            return INCLUSIVE, "derived", ("sum_ne_total",)
        odd = ("sum_ne_total",) if neither or only_inclusive else ()
        return EXCLUSIVE, "anomaly" if odd else "ok", odd
    if cached <= fit.input:
        if only_exclusive:
            return EXCLUSIVE, "derived", ("sum_ne_total",)
        if usage_map.write_outside and neither and fit.write_outside:
            return WRITE_OUTSIDE, "derived", ("sum_ne_total",)
        return INCLUSIVE, "anomaly" if odd else "ok", odd
    if usage_map.write_outside and fit.cached <= fit.input and not only_exclusive:
        return WRITE_OUTSIDE, "derived", ("cache_gt_input",)
    if only_exclusive or gateway:
        return EXCLUSIVE, "derived", ("cache_gt_input",)
    return INCLUSIVE, "anomaly", ("cache_gt_input",)


def _by_total(
    fit: Fit, only_inclusive: bool, only_exclusive: bool, usage_map: UsageMap
) -> tuple[str, str, tuple[str, ...]]:
    cached = fit.cached + fit.written
    if not cached:
        return INCLUSIVE, "ok", ()
    if only_exclusive:
        return EXCLUSIVE, "ok", ()
    if cached > fit.input:
        return EXCLUSIVE, "ok" if not only_inclusive else "derived", () if not only_inclusive else ("cache_gt_input",)
    if only_inclusive:
        return INCLUSIVE, "derived", ("sum_ne_total",) if usage_map.otherwise == "inclusive" else ()
    if usage_map.otherwise == "inclusive":
        return INCLUSIVE, "derived", ("sum_ne_total",)
    return BY_TOTAL, "ambiguous", ()


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


def by_ttl(write: int | None, split: Mapping[str, int] | None) -> tuple[Mapping[str, int], bool]:
    """Writes by time to live, what no part names under `unknown`; and whether the parts exceed the whole.

    Parts that exceed the whole are no split: the whole is kept, the parts are not.
    """
    if not write:
        return NOTHING, bool(write == 0 and split and any(split.values()))
    parts = {ttl: count for ttl, count in split.items() if count} if split else {}
    rest = write - sum(parts.values())
    if rest < 0:
        return NOTHING, True
    if rest:
        parts["unknown"] = parts.get("unknown", 0) + rest
    return parts, False


def _with_parts(record: UsageRecord, parts: list[Part], usage_map: UsageMap) -> UsageRecord | Quarantined:
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
    components = [replace(record, anomalies=())]
    for part in added:
        cached = (part.read or 0) + (part.write or 0)
        total = (part.input or 0) + (cached if usage_map.rule == EXCLUSIVE else 0)
        split, _ = by_ttl(part.write, part.split)
        uncached = total - cached
        components.append(
            replace(
                record,
                model=part.model or record.model,
                total_input_tokens=total,
                cache_read_tokens=part.read,
                cache_write_tokens=part.write,
                cache_write_by_ttl=split,
                uncached_input_tokens=uncached,
                output_tokens=part.output,
                anomalies=(),
            )
        )
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


def _is_whole(part: Part, usage_map: UsageMap) -> bool:
    cached = (part.read or 0) + (part.write or 0)
    return part.input is not None and (usage_map.rule == EXCLUSIVE or cached <= part.input)


def _sum(components: list[UsageRecord], name: str) -> int | None:
    known = [count for component in components if (count := getattr(component, name)) is not None]
    return sum(known) if known else None


def _unknown(quality: str, *anomalies: str) -> Reading:
    return Reading(None, None, None, None, None, quality, anomalies)


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
