"""Whole blocks of plain lines at once, for logs that are read from front to end: columns instead of records.

A log's lines are mostly of one shape. Of all members that the fast lane of `typed.py` looks at, this one learns which
are ever there, decodes blocks of lines to just those in one call, and does the arithmetic column by column. What a
combination of words means (model, service tier, status …) is asked of the fast lane once for each; every other line
(a member more or less, a number that is none, sums that do not agree) is handed back for the general way. A property
test holds both ways to the same sums.
"""

from __future__ import annotations

from itertools import compress
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Protocol, get_args

import msgspec

from . import rules, values
from .conditions import Every, Some, Test
from .intake import Group
from .narrow import run_for
from .record import NOTHING, UsageRecord
from .typed import lane_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from .conditions import Condition
    from .intake import Row
    from .maps import UsageMap
    from .narrow import Run
    from .paths import Path
    from .typed import Lane

_COUNT = Annotated[int, msgspec.Meta(ge=0, le=values.MOST_TOKENS)]
_ID = Annotated[str, msgspec.Meta(min_length=1, max_length=values.LONGEST_WORD)]
_WHOLE_SECONDS = Annotated[int, msgspec.Meta(gt=0, lt=100_000_000_000)]
_REMEMBERED = 4096
"""Combinations of words whose meaning is kept."""
_LEARN_FROM = 200
_ZERO = frozenset({"extra_input", "extra_output", "reasoning"})
"""Counts that make a line special unless they are 0."""
_PATIENCE = 5
"""How many blocks may have no shape, or another one than was learnt, before all is left to the general way."""


class Taken(NamedTuple):
    """What a block came to.

    Attributes:
        groups: plain records by what they have in common.
        odd: lines for the general way, in order.
        repeats: records whose id was there before.
        lines: how many lines the block had.
    """

    groups: list[Group]
    odd: list[bytes]
    repeats: int
    lines: int


class _Leaf(NamedTuple):
    """A member that the fast lane looks at."""

    steps: tuple[str, ...]
    attribute: str
    type: Any


class _Plan(NamedTuple):
    """A shape of lines.

    Attributes:
        decoder: decodes lines of just this shape.
        getter: the members of a decoded line as a row: numbers, words that decide what a line means, fields.
        words: where in a row the words begin, and where the fields do.
        fields: names of asked-for fields, and where each stands; it may be one of the words.
        identity: gives the id of a decoded line; None where lines have none.
        run: the arithmetic.
    """

    decoder: Any
    getter: Callable[[Any], tuple[Any, ...]]
    words: tuple[int, int]
    fields: Sequence[tuple[str, int]]
    identity: Callable[[Any], str] | None
    run: Run


class Memory(Protocol):
    """Remembers ids of records."""

    def keys(self, ids: Iterable[str]) -> list[Any]:
        """What stands for ids here."""

    def add(self, key: Any) -> bool:
        """Remembers an id; whether it is new."""

    def add_all(self, keys: Sequence[Any]) -> bool:
        """Remembers ids that are all new and all different, or none of them; whether they were."""

    def drop(self, keys: Sequence[Any]) -> None:
        """Forgets ids that were added last."""


class Recent:
    """Ids seen lately, as 64-bit hashes: at least the last `bound`, at most twice as many."""

    def __init__(self, bound: int) -> None:
        self._bound = max(bound, 1)
        self._new: set[int] = set()
        self._old: set[int] = set()

    @staticmethod
    def keys(ids: Iterable[str]) -> list[int]:
        """What stands for ids here."""
        return list(map(hash, ids))

    def add(self, number: int) -> bool:
        """Remembers an id; whether it is new."""
        if number in self._new or number in self._old:
            return False
        self._new.add(number)
        self._turn()
        return True

    def add_all(self, numbers: Sequence[int]) -> bool:
        """Remembers ids that are all new and all different, or none of them; whether they were."""
        several = set(numbers)
        if len(several) < len(numbers) or not several.isdisjoint(self._new) or not several.isdisjoint(self._old):
            return False
        self._new |= several
        self._turn()
        return True

    def drop(self, numbers: Iterable[int]) -> None:
        """Forgets ids."""
        self._new.difference_update(numbers)
        self._old.difference_update(numbers)

    def _turn(self) -> None:
        if len(self._new) >= self._bound:
            self._old, self._new = self._new, set()


class Blocks:
    """Takes blocks of lines of one source in. Arguments as those of `Intake`.

    Attributes:
        able: whether the format has plain lines.
        recent: ids of the records that were taken in here, and of those that the caller adds.
    """

    def __init__(
        self,
        usage_map: UsageMap,
        *,
        input_includes_cache: bool | None = None,
        fields: Mapping[str, Path] | None = None,
        provider: str | None = None,
        models: Mapping[str, str] | None = None,
        protect: Callable[[dict[str, str]], dict[str, str]] | None = None,
        dedupe_records: int = 100_000,
        memory: Memory | None = None,
    ) -> None:
        self.recent: Memory = Recent(dedupe_records) if memory is None else memory
        self._map = usage_map
        self._lane: Lane | None = None
        self._roles: Mapping[tuple[Any, ...], str] = _roles(usage_map)
        asked = {_full(path, usage_map) for path in (*_words(usage_map), *(fields or {}).values())}
        if not usage_map.identity_has_status and asked.isdisjoint(self._roles):
            self._lane = lane_for(
                usage_map,
                override=input_includes_cache,
                fields=fields or {},
                provider=provider,
                models=models or {},
                protect=protect,
            )
        self.able = self._lane is not None
        self._plan: _Plan | None = None
        self._failures = 0
        self._samples: dict[tuple[Any, ...], UsageRecord | None] = {}
        self._varied: dict[tuple[Any, ...], UsageRecord] = {}
        self._fields = {name: _full(path, usage_map) for name, path in (fields or {}).items()}
        self._protect = protect or dict
        if self._lane is not None:
            self._general = msgspec.json.Decoder(self._lane.struct).decode
            self._leaves = list(_leaves(self._lane.struct))

    def take(self, block: bytes) -> Taken:
        """What a block of whole lines comes to. Never raises."""
        if self._plan is None:
            self._learn(block)
        if self._plan is None:
            lines = [line for line in block.split(b"\n") if line.strip()]
            return Taken([], lines, 0, len(lines))
        odd: list[bytes] = []
        lines = []
        try:
            decoded = self._plan.decoder.decode_lines(block)
        except (ValueError, RecursionError):
            decoded, lines, odd = self._one_by_one(block)
        count = len(decoded) + len(odd)
        groups, repeats = self._counted(decoded, lines, block, odd) if decoded else ([], 0)
        if len(odd) * 2 > count:  # the shape has changed
            self._plan = None
        return Taken(groups, odd, repeats, count)

    def _one_by_one(self, block: bytes) -> tuple[list[Any], list[bytes], list[bytes]]:
        assert self._plan is not None  # noqa: S101  # for mypy: the caller has looked
        decode = self._plan.decoder.decode
        decoded, plain, odd = [], [], []
        for line in block.split(b"\n"):
            try:
                decoded.append(decode(line))
                plain.append(line)
            except (ValueError, RecursionError):
                if line.strip():
                    odd.append(line)
        return decoded, plain, odd

    def _counted(
        self, decoded: list[Any], lines: list[bytes], block: bytes, odd: list[bytes]
    ) -> tuple[list[Group], int]:
        """Decoded lines of a block to groups; what is not plain after all goes to `odd`."""
        assert self._plan is not None  # noqa: S101  # for mypy: the caller has looked
        identity, repeats, ids = self._plan.identity, 0, []
        if identity is not None:
            ids = self.recent.keys(map(identity, decoded))
            if not self.recent.add_all(ids):
                fresh = [self.recent.add(one) for one in ids]
                repeats = fresh.count(False)
                lines = lines or _lines(block)
                decoded, lines, ids = (list(compress(some, fresh)) for some in (decoded, lines, ids))
        doubtful: list[int] = []
        kept, heads = self._plan.run(decoded, doubtful)
        getter, (first, last) = self._plan.getter, self._plan.words
        groups: dict[int, Group] = {}
        refused = set()
        for words, some in kept.items():
            meaning, row = words[: last - first], getter(decoded[heads[words]])
            if meaning not in self._samples:
                lines = lines or _lines(block)
                self._remember(self._samples, meaning, self._sample(lines[heads[words]], some[0], row))
            sample = self._samples[meaning]
            if sample is None:
                refused.add(meaning)
                continue
            sample = self._with_extra(sample, meaning, row)
            group = groups.get(id(sample))
            if group is None:
                groups[id(sample)] = Group(sample, some)
            else:
                group.rows.extend(some)
        if refused:
            doubtful = sorted({*doubtful, *(n for n, one in enumerate(decoded) if getter(one)[first:last] in refused)})
        if doubtful:
            lines = lines or _lines(block)
            odd += [lines[n] for n in doubtful]
            if ids:  # the general way has a memory of its own
                self.recent.drop([ids[n] for n in doubtful])
        return list(groups.values()), repeats

    def _extra(self, row: tuple[Any, ...]) -> Mapping[str, str]:
        """The asked-for fields of a row, as far as they may be kept."""
        assert self._plan is not None  # noqa: S101  # for mypy: the caller has looked
        found = {name: text for name, at in self._plan.fields if (text := values.word(row[at]))}
        return self._protect(found) if found else NOTHING

    def _with_extra(self, sample: UsageRecord, meaning: tuple[Any, ...], row: tuple[Any, ...]) -> UsageRecord:
        """The sample with a row's fields; the same object for the same fields."""
        extra = self._extra(row)
        if extra == sample.extra:
            return sample
        key = (meaning, *sorted(extra.items()))
        found = self._varied.get(key)
        if found is None:
            found = msgspec.structs.replace(sample, extra=extra)
            self._remember(self._varied, key, found)
        return found

    @staticmethod
    def _remember(memory: dict[tuple[Any, ...], Any], key: tuple[Any, ...], value: Any) -> None:
        if len(memory) >= _REMEMBERED:
            memory.clear()
        memory[key] = value

    def _sample(self, line: bytes, numbers: Row, row: tuple[Any, ...]) -> UsageRecord | None:
        """What the fast lane says of a line, without its numbers; None where it says anything but the columns do."""
        assert self._lane is not None  # noqa: S101  # for mypy: there is a plan
        one = self._lane.record(self._general(line))
        if one is None or one.status != "success":
            return None
        said = (
            one.total_input_tokens,
            one.cache_read_tokens,
            one.cache_write_tokens,
            one.uncached_input_tokens,
            one.output_tokens,
            one.cache_write_by_ttl,
            one.time,
            one.ttft_seconds,
            one.duration_seconds,
        )
        if said != numbers or one.extra != self._extra(row):
            return None
        return UsageRecord(
            None, one.format, one.provider, one.model, None, one.status, one.quality, (), None, None, None, NOTHING,
            None, None, None, None, one.attempt, one.service_tier, one.batch, (), one.extra,
        )  # fmt: skip

    def _learn(self, block: bytes) -> None:
        """Learns the shape of a log from the lines that the fast lane takes."""
        if self._lane is None or self._failures >= _PATIENCE:
            return
        self._failures += 1
        seen = []
        for line in block.split(b"\n", _LEARN_FROM)[:_LEARN_FROM]:
            try:
                one = self._general(line)
            except (ValueError, RecursionError):
                continue
            if self._lane.record(one) is not None:
                seen.append(one)
        if not seen:
            return
        found = {leaf: [_value(one, leaf.attribute) for one in seen] for leaf in self._leaves}
        live = {leaf: values for leaf, values in found.items() if any(value is not None for value in values)}
        self._plan = _plan(self._lane.struct, live, self._roles, self._map, self._fields)
        self._samples.clear()
        self._varied.clear()


def _lines(block: bytes) -> list[bytes]:
    return [line for line in block.split(b"\n") if line.strip()]


def _leaves(struct: Any, steps: tuple[str, ...] = (), attribute: str = "") -> Iterator[_Leaf]:
    for member in msgspec.structs.fields(struct):
        inner = _inner(member.type)
        path, name = (*steps, member.encode_name), f"{attribute}{member.name}"
        if inner is not None:
            yield from _leaves(inner, path, f"{name}.")
        else:
            yield _Leaf(path, name, member.type)


def _inner(kind: Any) -> Any:
    """The struct in a member's type, if it is an object."""
    options = (kind, *get_args(kind))
    return next((one for one in options if isinstance(one, type) and issubclass(one, msgspec.Struct)), None)


def _value(one: Any, attribute: str) -> Any:
    for name in attribute.split("."):
        if one is None:
            return None
        one = getattr(one, name)
    return None if isinstance(one, msgspec.Raw) and bytes(one) == b"null" else one


def _full(path: Path, m: UsageMap) -> tuple[Any, ...]:
    return path.steps if path.absolute else m.usage[0].steps + path.steps if m.usage else path.steps


def _roles(m: UsageMap) -> dict[tuple[Any, ...], str]:
    """What a member is, by its path; members without a role are words."""
    spans = [path for span in (*m.ttft, *m.duration) for path in (span.path, *span.start, *span.end, *span.before)]
    named: list[tuple[str, Sequence[Path | None]]] = [
        *m.tokens.items(),
        *((f"ttl {ttl}", paths) for ttl, paths in m.write_by_ttl.items()),
        ("id", m.id),
        ("time", m.time),
        ("span", spans),
    ]
    return {_full(path, m): role for role, paths in named for path in paths if path is not None}


def _words(m: UsageMap) -> Iterator[Path]:
    """Paths that a map decides by: were one of them a number's, the number would decide, and not only count."""
    yield from (*m.model, *m.service_tier, *m.provider_paths)
    conditions = [condition for condition, _ in m.skip] + [rule.condition for rule in m.rules] + [m.replay, m.retry]
    for rule in m.status:
        yield from rule.paths
        conditions += [rule.condition] if rule.condition is not None else []
    for condition in (*conditions, *((m.batch,) if isinstance(m.batch, Some) else ())):
        yield from _asked(condition)


def _asked(condition: Condition) -> Iterator[Path]:
    if isinstance(condition, Test):
        yield from condition.paths
    elif isinstance(condition, Every | Some):
        for part in condition.parts:
            yield from _asked(part)


def _plan(
    struct: Any,
    live: Mapping[_Leaf, list[Any]],
    roles: Mapping[tuple[Any, ...], str],
    m: UsageMap,
    fields: Mapping[str, tuple[Any, ...]],
) -> _Plan | None:
    """How to decode lines of which just these members are there; None where they ask for more than columns can do."""
    kinds: dict[str, Any] = {}
    place: dict[str, str] = {}
    words: dict[tuple[Any, ...], str] = {}
    only_fields = set(fields.values()) - {_full(path, m) for path in _words(m)}
    for leaf, found in live.items():
        role = roles.get(leaf.steps)
        if role is None:
            if leaf.type is msgspec.Raw or ("." in leaf.attribute and None in found):
                return None
            kinds[leaf.attribute] = leaf.type
            words[leaf.steps] = leaf.attribute
            continue
        kind = _kind(role, found)
        if kind is None or role in place:
            return None
        kinds[leaf.attribute] = kind
        place[role] = leaf.attribute
    shape = None
    if _adds_up(place.keys(), m):
        shape = _shape(struct, kinds, {leaf.attribute: found for leaf, found in live.items()})
    if shape is None:
        return None
    deciding = [steps for steps in words if steps not in only_fields]
    order = [*deciding, *(steps for steps in words if steps in only_fields)]
    said = [words[steps] for steps in order]
    return _Plan(
        msgspec.json.Decoder(shape),
        # Never one alone: of a single member, attrgetter gives no tuple.
        attrgetter(place["input"], place["output"], *said),
        (2, 2 + len(deciding)),
        [(name, 2 + order.index(steps)) for name, steps in fields.items() if steps in words],
        attrgetter(place["id"]) if "id" in place else None,
        run_for(place, said, m, time_is_number=kinds.get(place.get("time", "")) is _WHOLE_SECONDS),
    )


def _adds_up(roles: AbstractSet[str], m: UsageMap) -> bool:
    """Whether these numbers are enough for the columns."""
    if not {"input", "output"} <= roles or ("read" not in roles and (m.rule == rules.EXCLUSIVE or "write" in roles)):
        return False
    if "read" not in roles and not roles.isdisjoint({*_ZERO, "uncached"}):
        return False
    return "write" in roles or not any(role.startswith("ttl ") for role in roles)


def _kind(role: str, found: list[Any]) -> Any:
    """The type of a member with a role; None where lines differ in it."""
    if any(value is None for value in found):
        return None
    if role == "id":
        return _ID
    if role == "time":
        if all(value.__class__ is int for value in found):
            return _WHOLE_SECONDS
        return _ID if all(isinstance(value, str) for value in found) else None
    return None if role == "span" else _COUNT


def _shape(struct: Any, kinds: Mapping[str, Any], found: Mapping[str, list[Any]], attribute: str = "") -> Any:
    """The struct of lines of one shape: members that were never there may not be there."""
    members: list[Any] = []
    renamed = {}
    for member in msgspec.structs.fields(struct):
        name = f"{attribute}{member.name}"
        renamed[member.name] = member.encode_name
        inner = _inner(member.type)
        if inner is None:
            kind = kinds.get(name)
            optional = kind is None or kind == member.type
            members.append((member.name, kind if kind is not None else type(None), *((None,) if optional else ())))
            continue
        below = _shape(inner, kinds, found, f"{name}.")
        if below is None:
            return None
        if any(key.startswith(f"{name}.") for key in kinds):
            members.append((member.name, below))
        else:
            members.append((member.name, below | None, None))
    members.sort(key=len)
    return msgspec.defstruct(struct.__name__, members, rename=renamed, gc=False)
