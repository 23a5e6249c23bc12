"""A fast lane for plain lines: the paths of a map as typed msgspec structs, its rules as one generated function.

Most lines of most logs are plain: one object, whole numbers, sums that agree. Such a line goes straight from bytes to a
record here. Whatever else stands in a line (text for a number, an odd total, parts, a usage object elsewhere) makes the
lane decline, and the general way of `extract.py` and `rules.py` decides; both give the same record, which a property
test holds them to. The function is generated as `dataclasses` and `attrs` do it: from names that this module makes up,
never from text of a map.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from . import rules, values
from .conditions import Every, Some, Test
from .extract import provider_name
from .record import NOTHING, UsageRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .conditions import Condition
    from .maps import Span, UsageMap
    from .paths import Path

_COUNT = Annotated[int, msgspec.Meta(ge=0, le=values.MOST_TOKENS)]
_TYPES: Mapping[str, Any] = {
    "count": _COUNT | None,
    "text": Annotated[str, msgspec.Meta(min_length=1, max_length=values.LONGEST_WORD)] | None,
    "moment": str | int | float | None,
    "scalar": str | int | float | bool | None,
    "raw": msgspec.Raw,
}
_STRICTER: Mapping[frozenset[str], str] = {
    frozenset({"raw", kind}): kind for kind in ("count", "text", "moment", "scalar")
} | {
    frozenset({"scalar", "text"}): "text",
    frozenset({"moment", "scalar"}): "moment",
    frozenset({"count", "scalar"}): "count",
}


class _Unsuitable(Exception):  # noqa: N818  # never leaves this module
    """The map says more than the lane can do."""


class _Node:
    """An object on the way to some path."""

    def __init__(self) -> None:
        self.below: dict[str, _Node | str] = {}
        self.type: Any = None

    def struct(self, name: str) -> Any:
        """The struct type that decodes it; members that no path names are skipped unread."""
        fields, renamed = [], {}
        for number, (key, below) in enumerate(self.below.items()):
            renamed[f"f{number}"] = key
            kind = below.struct(f"{name}_{number}") | None if isinstance(below, _Node) else _TYPES[below]
            fields.append((f"f{number}", kind, None))
        self.type = msgspec.defstruct(name, fields, rename=renamed, gc=False)
        return self.type


class _Writer:
    """Writes the lane's source, and gathers the leaves it reads."""

    def __init__(self, usage: Path) -> None:
        self.usage = usage
        self.root = _Node()
        self.lines: list[str] = []
        self.names: dict[str, Any] = {}
        self._nodes: dict[tuple[str, ...], str] = {(): "r"}
        self._empty: dict[str, _Node] = {}
        self._serial = 0

    def finish(self) -> Any:
        """The struct type of a line, once every leaf is known."""
        struct = self.root.struct("Line")
        self.names.update({name: node.type() for name, node in self._empty.items()})
        return struct

    def line(self, text: str, depth: int = 1) -> None:
        self.lines.append("    " * depth + text)

    def constant(self, value: Any) -> str:
        name = self.name("k")
        self.names[name] = value
        return name

    def name(self, letter: str) -> str:
        self._serial += 1
        return f"{letter}{self._serial}"

    def leaf(self, path: Path, kind: str) -> tuple[str, str]:
        """The variable of the object that holds a path's last key, and the key's place in it."""
        steps = self._steps(path)
        node = self.root
        for at, step in enumerate(steps[:-1]):
            below = node.below.setdefault(step, _Node())
            if below == "raw":  # asked about until now; an object answers that too
                below = node.below[step] = _Node()
            if not isinstance(below, _Node):
                raise _Unsuitable
            self._reach(steps[: at + 1], node)
            node = below
        key = steps[-1]
        known = node.below.get(key)
        if isinstance(known, _Node):
            if kind != "raw":
                raise _Unsuitable
        elif known is None or known == kind:
            node.below[key] = kind
        elif frozenset({known, kind}) in _STRICTER:
            node.below[key] = _STRICTER[frozenset({known, kind})]
        else:
            raise _Unsuitable
        return self._nodes[steps[:-1]], f"f{list(node.below).index(key)}"

    def _steps(self, path: Path) -> tuple[str, ...]:
        steps = path.steps if path.absolute else self.usage.steps + path.steps
        if not steps or not all(isinstance(step, str) for step in steps):
            raise _Unsuitable
        return tuple(str(step) for step in steps)

    def _reach(self, steps: tuple[str, ...], holder: _Node) -> None:
        if steps not in self._nodes:
            outer = self._nodes[steps[:-1]]
            field = f"f{list(holder.below).index(steps[-1])}"
            name = self._nodes[steps] = self.name("n")
            empty = self.name("e")  # stands for an object that is not there: nothing below it is
            node = holder.below[steps[-1]]
            assert isinstance(node, _Node)  # noqa: S101  # for mypy: that is why it is reached
            self._empty[empty] = node
            self.line(f"{name} = {outer}.{field} or {empty}")

    def first(self, paths: Sequence[Path], kind: str) -> str:
        """A variable with the first value at the paths that is not null."""
        name = self.name("v")
        if not paths:
            self.line(f"{name} = None")
        for at, path in enumerate(paths):
            before = len(self.lines)
            outer, field = self.leaf(path, kind)
            value = f"{outer}.{field}"
            if at == 0:
                self.line(f"{name} = {value}")
                continue
            reached, self.lines[before:] = self.lines[before:], []
            self.lines += reached  # objects on the way are looked up once, for whoever needs them later
            self.line(f"if {name} is None:")
            self.line(f"{name} = {value}", 2)
        return name

    def condition(self, condition: Condition) -> str:
        """An expression for whether a condition holds; what it reads has been written before it."""
        if isinstance(condition, Every | Some):
            parts = [self.condition(part) for part in condition.parts]
            joiner, empty = (" and ", "True") if isinstance(condition, Every) else (" or ", "False")
            return f"({joiner.join(parts)})" if parts else empty
        if not isinstance(condition, Test):
            raise _Unsuitable
        if condition.test == "present":
            value = self._present(condition.paths)
            return value if condition.operand else f"(not {value})"
        value = self.first(condition.paths, "scalar")
        return f"({value} is not None and {self.constant(condition.passes)}({value}))"

    def _present(self, paths: Sequence[Path]) -> str:
        tests = []
        for path in paths:
            outer, field = self.leaf(path, "raw")
            value = self.name("v")
            self.line(f"{value} = {outer}.{field}")
            tests.append(f"({value} is not None and {self.constant(_not_null)}({value}))")
        return f"({' or '.join(tests)})" if tests else "False"


def _not_null(value: Any) -> bool:
    return not isinstance(value, msgspec.Raw) or bytes(value) != b"null"


@dataclass(frozen=True, slots=True)
class Lane:
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
    if m.stream or m.cumulative or m.each or m.decode or m.attributes or m.context or not m.usage:
        return None
    if override is not None or m.rule == rules.BY_TOTAL or m.write_is_split or m.inferred:
        return None
    writer = _Writer(m.usage[0])
    try:
        names = _write(writer, m, fields, provider, models)
        struct = writer.finish()
    except _Unsuitable:
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
        key = ({provider}, {model}, {status}, q, {attempt}, {tier}, {batch}, {values})
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
    "by_ttl": rules.by_ttl,
    "duration": values.duration,
    "moment": values.seconds_since_epoch,
    "word": values.word,
}


def _write(  # noqa: C901  # one step per part of a record
    w: _Writer,
    m: UsageMap,
    fields: Mapping[str, Path],
    provider: str | None,
    models: Mapping[str, str],
) -> dict[str, Any]:
    """Writes the body of the lane; gives the variables in which it leaves what it found."""
    _decline(w, m)
    # Reasoning inside the output says nothing that is asked here: a total that needs it declines below.
    needed = {name: m.tokens.get(name, ()) for name in _NEEDED if name != "reasoning" or m.reasoning_outside}
    counts = {name: w.first(paths, "count") for name, paths in needed.items() if paths or name in _ALWAYS}
    i, o, t, reads, writes = (counts[name] for name in ("input", "output", "total", "read", "write"))
    w.line(f"if {i} is None or {o} is None: DECLINE")
    for name in ("extra_input", "extra_output", "reasoning"):
        if m.tokens.get(name) and (name != "reasoning" or m.reasoning_outside):
            w.line(f"if {counts[name]}: DECLINE")
    status = _status(w, m)
    w.line(f"c = ({reads} or 0) + ({writes} or 0)")
    if m.tokens.get("uncached"):
        rest = counts["uncached"]
        w.line(f"if {rest} is not None and ({reads} is None or {rest} != {i} - c): DECLINE")
    checked = bool(m.tokens.get("total")) and not m.total_ignored
    if m.rule == rules.EXCLUSIVE:
        if not m.absent_cache_is_none:
            w.line(f"if {reads} is None: DECLINE")
        w.line(f"a, u, q = {i} + c, {i}, 'ok'")
    else:
        if m.absent_read_is_zero or m.absent_write_is_zero or m.write_outside:
            raise _Unsuitable
        w.line(f"if c > {i}: DECLINE")
        w.line(f"a = {i}")
        w.line(f"if {reads} is None: u, q = None, 'cache_unknown'")
        w.line(f"else: u, q = {i} - c, 'ok'")
    if checked:
        w.line(f"if {t} is not None and {t} != a + {o}: DECLINE")
    w.line(f"if {status} != 'success' and not (a or {o}): DECLINE")
    split = _split(w, m, writes)
    words = [w.first(paths[:1], "text") for paths in (m.id, m.model, m.service_tier)]
    for name, paths in zip(words, (m.id, m.model, m.service_tier), strict=True):
        if len(paths) > 1:
            rest = w.first(paths[1:], "text")
            w.line(f"if {name} is None: {name} = {rest}")
    id_, model, tier = words
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


def _decline(w: _Writer, m: UsageMap) -> None:
    """Leaves to the general way what skips, replays, parts and rules of their own are about."""
    for condition in [*(condition for condition, _ in m.skip), m.replay]:
        w.line(f"if {w.condition(condition)}: DECLINE")
    own = "False"
    for rule in m.rules:
        if rule.rule == m.rule and rule.total_ignored == m.total_ignored:
            own = f"({own} or {w.condition(rule.condition)})"
        else:
            w.line(f"if not {own} and {w.condition(rule.condition)}: DECLINE")
    for at in [*(m.parts.at if m.parts else ()), *(m.write_list.at if m.write_list else ())]:
        w.line(f"if {w._present([at])}: DECLINE")  # noqa: SLF001  # one module


def _status(w: _Writer, m: UsageMap) -> str:
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


def _split(w: _Writer, m: UsageMap, writes: str) -> str:
    counts = {ttl: w.first(paths, "count") for ttl, paths in m.write_by_ttl.items()}
    if counts and not m.tokens.get("write"):
        raise _Unsuitable
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


def _provider(w: _Writer, m: UsageMap, provider: str | None) -> str:
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


def _spans(w: _Writer, spans: Sequence[Span]) -> str:
    name = w.name("d")
    w.line(f"{name} = None")
    for span in spans:
        if span.path is not None:
            value = w.first((span.path,), "moment")
            w.line(f"if {name} is None and {value} is not None: {name} = duration({value}, {w.constant(span.unit)})")
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
