"""A fast lane for plain lines: the paths of a map as typed msgspec structs, its rules as one generated function.

Most lines of most logs are plain: one object, whole numbers, sums that agree. Such a line goes straight from bytes to a
record here. Whatever else stands in a line (text for a number, an odd total, parts, a usage object elsewhere) makes the
lane decline, and the general way of `extract` and `rules` decides; both give the same record, which a property
test holds them to. The function is generated as `dataclasses` and `attrs` do it: from names that this module makes up,
never from text of a map.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Any

import msgspec

from prefix_cache_exporter.usage import values
from prefix_cache_exporter.usage.conditions import Some
from prefix_cache_exporter.usage.extract.envelope import provider_name
from prefix_cache_exporter.usage.paths import Path
from prefix_cache_exporter.usage.record import NOTHING, UsageRecord
from prefix_cache_exporter.usage.rules.additive import BY_TOTAL, EXCLUSIVE
from prefix_cache_exporter.usage.rules.ttl import by_ttl

from .source import UnsuitableError, Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from prefix_cache_exporter.usage.maps.model import Span, UsageMap


class Lane(msgspec.Struct, frozen=True):
    """The fast lane of one source.

    Attributes:
        struct: the type that plain lines decode to.
        record: from a decoded line to its record; None for what is not plain after all.
        gather: does the same for many lines and gathers what they have in common, see `Intake.gather`.
    """

    struct: Any
    record: Callable[[Any], UsageRecord | None]
    gather: Callable[..., int]


def lane_for(
    usage_map: UsageMap,
    *,
    override: bool | None,
    fields: Mapping[str, Path],
    provider: str | None,
    models: Mapping[str, str],
    protect: Callable[[dict[str, str]], dict[str, str]] | None,
) -> Lane | None:
    """The lane of a source; None where its format or override has no plain lines."""
    m = usage_map
    if m.aggregate or m.stream or m.cumulative or m.decode or m.attributes or m.context or m.foreign or not m.usage:
        return None
    if override is not None or m.rule == BY_TOTAL or m.write_is_split or m.inferred:
        return None
    writer = Writer(m.usage[0])
    try:
        names = _write(writer, m, fields, provider, models)
        struct = writer.finish()
    except UnsuitableError:
        return None
    protected = writer.constant(protect or dict)
    body = "\n".join(writer.lines)
    record = body.replace("DECLINE", "return None")
    gather = body.replace("\n", "\n    ").replace("DECLINE", "odd(n); continue")
    source = _SOURCE.format(
        record=record,
        gather=gather,
        format=writer.constant(m.format),
        protect=protected,
        given_names="".join(f"{writer.constant(field)}, " for field in names["extra"]),
        extras=f"extras({', '.join(names['extra'].values())})" if names["extra"] else "NOTHING",
        values="".join(f"{value}, " for value in names["extra"].values()),
        identity="f'{" + names["id"] + "}\\0{" + names["status"] + "}'" if m.identity_has_status else names["id"],
        **{name: value for name, value in names.items() if name != "extra"},
    )
    scope: dict[str, Any] = {**_SCOPE, **writer.names}
    exec(compile(source, f"<lane of {m.format}>", "exec"), scope)  # noqa: S102  # made of this module's own names
    return Lane(struct, scope["record"], scope["gather"])


_SOURCE = """
def extras(*given):
    found = {{}}
    for name, value in zip(({given_names}), given):
        if value is not None:
            value = word(value)
            if value:
                found[name] = value
    return {protect}(found) if found else NOTHING

def record(r):
{record}
    return UsageRecord(
        {id}, {format}, {provider}, {model}, {when}, {status}, q, (), a, {read}, {write}, {split}, u, {output},
        {ttft}, {took}, {attempt}, {tier}, {batch}, (), {extras},
    )

def gather(rs, odd, opened, digest, seen, add_key, new_key):
    n = -1
    repeats = 0
    groups = {{}}
    group = groups.get
    for r in rs:
        n += 1
        if r is None:
            odd(n)
            continue
    {gather}
        if {id} is not None:
            k = digest(({identity}).encode()).digest()
            if k in seen:
                repeats += 1
                continue
            add_key(k)
            new_key(k)
        key = ({provider}, {model}, {status}, q, {read} is None, {attempt}, {tier}, {batch}, {values})
        add = group(key)
        if add is None:
            add = groups[key] = opened(UsageRecord(
                None, {format}, {provider}, {model}, None, {status}, q, (), None, None, None, NOTHING, None, None,
                None, None, {attempt}, {tier}, {batch}, (), {extras},
            ))
        add((a, {read}, {write}, u, {output}, {split}, {when}, {ttft}, {took}))
    return repeats
"""
_SCOPE: Mapping[str, Any] = {
    "UsageRecord": UsageRecord,
    "NOTHING": NOTHING,
    "by_ttl": by_ttl,
    "duration": values.duration,
    "moment": values.seconds_since_epoch,
    "word": values.word,
}


def _write(  # one step per part of a record
    w: Writer,
    m: UsageMap,
    fields: Mapping[str, Path],
    provider: str | None,
    models: Mapping[str, str],
) -> dict[str, Any]:
    """Writes the body of the lane; gives the variables in which it leaves what it found."""
    _decline(w, m)
    counts = _counts(w, m)
    o, reads, writes = (counts[name] for name in ("output", "read", "write"))
    status = _status(w, m)
    _add_up(w, m, counts)
    w.line(f"if {status} != 'success' and not (a or {o}): DECLINE")
    split = _split(w, m, writes)
    words = [w.first(paths[:1], "text") for paths in (m.id, m.model, m.service_tier)]
    for name, paths in zip(words, (m.id, m.model, m.service_tier), strict=True):
        if len(paths) > 1:
            rest = w.first(paths[1:], "text")
            w.line(f"if {name} is None: {name} = {rest}")
    id_, model, tier = words
    for condition, name in reversed(m.tier_when):  # of several that hold the first counts
        w.line(f"if {w.condition(condition)}: {tier} = {w.constant(name)}")
    if models:
        w.line(f"{model} = {w.constant(dict(models))}.get({model}, {model})")
    whose = _provider(w, m, provider)
    when = w.first(m.time, "moment")
    w.line(f"if {when} is not None:")
    w.line(f"if {when}.__class__ is int and 0 < {when} < {_SECONDS_END}: {when} = float({when})", 2)
    w.line("else:", 2)
    w.line(f"{when} = moment({when})", 3)
    w.line(f"if {when} is None: DECLINE", 3)
    ttft, took = _spans(w, m.ttft), _spans(w, m.duration)
    attempt, batch = w.name("t"), w.name("b")
    w.line(f"{attempt} = 'retry' if {w.condition(m.retry)} else 'first'")
    w.line(f"{batch} = " + (f"{w.condition(m.batch)} or None" if isinstance(m.batch, Some) else w.constant(m.batch)))
    return {
        "id": id_,
        "model": model,
        "tier": tier,
        "status": status,
        "provider": whose,
        "read": reads,
        "write": writes,
        "output": o,
        "split": split,
        "when": when,
        "ttft": ttft,
        "took": took,
        "attempt": attempt,
        "batch": batch,
        "extra": {name: w.first((path,), "scalar") for name, path in fields.items()},
    }


_SECONDS_END = 100_000_000_000  # beyond it a number is of another unit, as in `values.seconds_since_epoch`
_ALWAYS = frozenset({"input", "output", "total", "read", "write"})
_NEEDED = ("input", "extra_input", "output", "reasoning", "extra_output", "total", "read", "write", "uncached")


def _decline(w: Writer, m: UsageMap) -> None:
    """Leaves to the general way what skips, replays, parts, records within lines and rules of their own are about."""
    for path in m.each:
        place = Path(tuple(takewhile(lambda step: isinstance(step, str), path.steps)), path.absolute)
        w.line(f"if {w.present([place])}: DECLINE")
    for condition in [*(condition for condition, _ in m.skip), m.replay]:
        w.line(f"if {w.condition(condition)}: DECLINE")
    own = "False"
    for rule in m.rules:
        if rule.rule == m.rule and rule.total_ignored == m.total_ignored:
            own = f"({own} or {w.condition(rule.condition)})"
        else:
            w.line(f"if not {own} and {w.condition(rule.condition)}: DECLINE")
    for at in [*(m.parts.at if m.parts else ()), *(m.write_list.at if m.write_list else ())]:
        w.line(f"if {w.present([at])}: DECLINE")


def _counts(w: Writer, m: UsageMap) -> dict[str, str]:
    # Reasoning inside the output says nothing that is asked here: a total that needs it declines later.
    needed = {name: m.tokens.get(name, ()) for name in _NEEDED if name != "reasoning" or m.reasoning_outside}
    counts = {name: w.first(paths, "count") for name, paths in needed.items() if paths or name in _ALWAYS}
    w.line(f"if {counts['input']} is None or {counts['output']} is None: DECLINE")
    for name in ("extra_input", "extra_output"):
        if m.tokens.get(name):
            w.line(f"if {counts[name]}: DECLINE")
    if "reasoning" in counts:
        w.line(f"{counts['output']} += {counts['reasoning']} or 0")
    if m.modalities is not None:
        w.line(f"if {w.present(m.modalities.at)}: DECLINE")
    if m.read_parts:
        w.line(f"if {counts['read']} is None and {w.present(m.read_parts)}: DECLINE")
    return counts


def _add_up(w: Writer, m: UsageMap, counts: Mapping[str, str]) -> None:
    """Writes the additive rule: all input to `a`, what is uncached of it to `u`, the quality to `q`."""
    i, o, t, reads, writes = (counts[name] for name in ("input", "output", "total", "read", "write"))
    w.line(f"c = ({reads} or 0) + ({writes} or 0)")
    if m.tokens.get("uncached"):
        rest = counts["uncached"]
        w.line(f"if {rest} is not None and ({reads} is None or {rest} != {i} - c): DECLINE")
    if m.rule == EXCLUSIVE:
        if not m.absent_cache_is_none:
            w.line(f"if {reads} is None: DECLINE")
        w.line(f"a, u, q = {i} + c, {i}, 'ok'")
    else:
        if m.write_outside:
            raise UnsuitableError
        for absent_is_zero, count in ((m.absent_read_is_zero, reads), (m.absent_write_is_zero, writes)):
            if absent_is_zero:
                w.line(f"{count} = {count} or 0")
        w.line(f"if c > {i}: DECLINE")
        w.line(f"a = {i}")
        w.line(f"if {reads} is None: u, q = None, 'cache_unknown'")
        w.line(f"else: u, q = {i} - c, 'ok'")
    if m.tokens.get("total") and not m.total_ignored:
        w.line(f"if {t} is not None and {t} != a + {o}: DECLINE")


def _status(w: Writer, m: UsageMap) -> str:
    name = w.name("s")
    w.line(f"{name} = None")
    for rule in m.status:
        if rule.condition is not None:
            w.line(f"if {name} is None and {w.condition(rule.condition)}: {name} = {w.constant(rule.status)}")
        else:
            value = w.first(rule.paths, "text")
            w.line(
                f"if {name} is None and {value} is not None: {name} = {w.constant(rule.values)}.get({value}.casefold())"
            )
    w.line(f"if {name} is None: {name} = {w.constant(m.default_status)}")
    return name


def _split(w: Writer, m: UsageMap, writes: str) -> str:
    counts = {ttl: w.first(paths, "count") for ttl, paths in m.write_by_ttl.items()}
    if counts and not m.tokens.get("write"):
        raise UnsuitableError
    name = w.name("p")
    pairs = ", ".join(f"{w.constant(ttl)}: {count} or 0" for ttl, count in counts.items())
    w.line(f"{name}, bad = NOTHING, False")
    if counts:
        absent = " and ".join(f"{count} is None" for count in counts.values())
        w.line(f"if {writes} is None and not ({absent}): DECLINE")
        w.line(f"if not {writes} and ({' or '.join(counts.values())}): DECLINE")
    w.line(f"if {writes}: {name}, bad = by_ttl({writes}, {{{pairs}}})")
    w.line("if bad: DECLINE")
    return name


def _provider(w: Writer, m: UsageMap, provider: str | None) -> str:
    if provider is not None or not m.provider_paths:
        return w.constant(provider or m.provider)
    raw = w.first(m.provider_paths, "text")
    known: dict[str | None, str] = {None: m.provider}

    def whose(name: str) -> str:
        if name not in known and len(known) < 1000:  # noqa: PLR2004  # records do not make up memory without end
            known[name] = provider_name(name, m) or m.provider
        return known.get(name) or provider_name(name, m) or m.provider

    name = w.name("o")
    w.line(f"{name} = {w.constant(whose)}({raw})")
    return name


def _spans(w: Writer, spans: Sequence[Span]) -> str:
    name = w.name("d")
    w.line(f"{name} = None")
    for span in spans:
        if span.path is not None:
            value = w.first((span.path,), "moment")
            given = f"{value} is not None" + (f" and {w.condition(span.condition)}" if span.condition else "")
            w.line(f"if {name} is None and {given}: {name} = duration({value}, {w.constant(span.unit)})")
            continue
        moments = [w.first(paths, "moment") for paths in (span.start, span.end, span.before) if paths]
        given = " and ".join(f"{moment} is not None" for moment in moments)
        start, end, *limit = moments
        w.line(f"if {name} is None and {given}:")
        w.line(f"{', '.join(moments)} = {', '.join(f'moment({moment})' for moment in moments)}", 2)
        w.line(
            f"if {given} and {end} >= {start}{f' and {end} < {limit[0]}' if limit else ''}: {name} = {end} - {start}", 2
        )
    return name
