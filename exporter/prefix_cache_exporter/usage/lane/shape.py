"""The shape of a log's lines: which members are ever there, what each is for, and a decoder of just those."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import msgspec

from prefix_cache_exporter.usage import values
from prefix_cache_exporter.usage.conditions import Every, Some, Test
from prefix_cache_exporter.usage.rules.additive import EXCLUSIVE

from .choice import keys_for, run_for
from .members import inner_struct
from .narrow import ABSENT_IS_ZERO, ZERO
from .sums import MOST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from prefix_cache_exporter.usage.conditions import Condition
    from prefix_cache_exporter.usage.maps.model import UsageMap
    from prefix_cache_exporter.usage.paths import Path

    from .members import Leaf
    from .narrow import KeysOf, Run

_COUNT = Annotated[int, msgspec.Meta(ge=0, le=MOST)]
_ID = Annotated[str, msgspec.Meta(min_length=1, max_length=values.LONGEST_WORD)]
# As floats: of these, comparing is quick whatever their size.
_SECONDS = Annotated[float, msgspec.Meta(gt=0, lt=1e11)]
_FEW = 64
"""Words that are expected by name where there are no more."""


class Plan(NamedTuple):
    """A shape of lines.

    Attributes:
        decoder: decodes lines of just this shape.
        getter: the members of a decoded line as a row: numbers, words that decide what a line means, fields.
        words: where in a row the words begin, and where the fields do.
        fields: names of asked-for fields, and where each stands; it may be one of the words.
        keys: gives what stands for the ids of decoded lines in their memory; None where lines have none.
        run: the arithmetic.
        ttls: times to live for which tokens may be written.
        close: whether it was made for just the keys and words that were seen.
    """

    decoder: Any
    getter: Callable[[Any], tuple[Any, ...]]
    words: tuple[int, int]
    fields: Sequence[tuple[str, int]]
    keys: KeysOf | None
    run: Run
    ttls: AbstractSet[str]
    close: bool


def full(path: Path, m: UsageMap) -> tuple[Any, ...]:
    """The steps of a path from the line on."""
    return path.steps if path.absolute else m.usage[0].steps + path.steps if m.usage else path.steps


def roles_of(m: UsageMap) -> dict[tuple[Any, ...], str]:
    """What a member is, by its path; members without a role are words."""
    spans = [path for span in (*m.ttft, *m.duration) for path in (span.path, *span.start, *span.end, *span.before)]
    named: list[tuple[str, Sequence[Path | None]]] = [
        *m.tokens.items(),
        *((f"ttl {ttl}", paths) for ttl, paths in m.write_by_ttl.items()),
        ("id", m.id),
        ("time", m.time),
        ("span", spans),
    ]
    return {full(path, m): role for role, paths in named for path in paths if path is not None}


def words_of(m: UsageMap) -> Iterator[Path]:
    """Paths that a map decides by: were one of them a number's, the number would decide, and not only count."""
    yield from (*m.model, *m.service_tier, *m.provider_paths)
    conditions = [condition for condition, _ in (*m.skip, *m.tier_when)]
    conditions += [*(rule.condition for rule in m.rules), m.replay, m.retry]
    conditions += [span.condition for span in (*m.ttft, *m.duration) if span.condition is not None]
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


def plan_for(
    struct: Any,
    live: Mapping[Leaf, list[Any]],
    roles: Mapping[tuple[Any, ...], str],
    m: UsageMap,
    fields: Mapping[str, tuple[Any, ...]],
    *,
    keys: Keys | None = None,
    hashed: bool = False,
) -> Plan | None:
    """How to decode lines of which just these members are there; None where they ask for more than columns can do.

    Args:
        struct: what the fast lane decodes.
        live: members that are there, and their values.
        roles: what members are.
        m: the map.
        fields: asked-for fields.
        keys: all keys of the lines that were looked at, where they are enough to expect no other keys and words.
        hashed: whether the memory of ids wants hashes of them.
    """
    kinds: dict[str, Any] = {}
    zeros: set[str] = set()
    place: dict[str, str] = {}
    words: dict[tuple[Any, ...], str] = {}
    constant: set[str] = set()
    only_fields = set(fields.values()) - {full(path, m) for path in words_of(m)}
    for leaf, found in live.items():
        role = roles.get(leaf.steps)
        if role is None:
            if leaf.type is msgspec.Raw or ("." in leaf.attribute and None in found):
                return None
            kinds[leaf.attribute] = leaf.type
            if keys is not None:
                kinds[leaf.attribute] = _one_of(leaf.type, found)
                if len(set(found)) == 1 and isinstance(found[0], str):
                    constant.add(leaf.attribute)
            words[leaf.steps] = leaf.attribute
            continue
        if role in ABSENT_IS_ZERO or (role == "read" and m.absent_read_is_zero):
            zeros.add(leaf.attribute)
        kind = _COUNT if leaf.attribute in zeros else _kind(role, found)
        if kind is None or role in place:
            return None
        kinds[leaf.attribute] = kind
        place[role] = leaf.attribute
    shape = None
    if _adds_up(place.keys(), m):
        shape = _shape(struct, kinds, set(words.values()) - constant, zeros, keys)
    if shape is None:
        return None
    deciding = [steps for steps in words if steps not in only_fields]
    order = [*deciding, *(steps for steps in words if steps in only_fields)]
    said = [words[steps] for steps in order]
    return Plan(
        msgspec.json.Decoder(shape),
        # Never one alone: of a single member, attrgetter gives no tuple.
        attrgetter(place["input"], place["output"], *said),
        (2, 2 + len(deciding)),
        [(name, 2 + order.index(steps)) for name, steps in fields.items() if steps in words],
        keys_for(shape, place["id"], hashed=hashed) if "id" in place else None,
        run_for(
            shape,
            place,
            [word for word in said if word not in constant],
            m,
            time_is_number=kinds.get(place.get("time", "")) is _SECONDS,
        ),
        frozenset({"unknown", *m.write_by_ttl}) if "write" in place else frozenset(),
        keys is not None,
    )


def _adds_up(roles: AbstractSet[str], m: UsageMap) -> bool:
    """Whether these numbers are enough for the columns."""
    if not {"input", "output"} <= roles or ("read" not in roles and (m.rule == EXCLUSIVE or "write" in roles)):
        return False
    if "read" not in roles and not roles.isdisjoint({*ZERO, "uncached"}):
        return False
    return "write" in roles or not any(role.startswith("ttl ") for role in roles)


def _kind(role: str, found: list[Any]) -> Any:
    """The type of a member with a role; None where lines differ in it."""
    if any(value is None for value in found):
        return None
    if role == "id":
        return _ID
    if role == "time":
        if all(value.__class__ in {int, float} for value in found):
            return _SECONDS
        return _ID if all(isinstance(value, str) for value in found) else None
    return None if role == "span" else _COUNT


def _one_of(kind: Any, found: list[Any]) -> Any:
    """The type of a word of which there are few: decoding such a one makes no new text."""
    told = {value for value in found if value is not None}
    if not told or len(told) > _FEW or not all(isinstance(value, str) for value in told):
        return kind
    few: Any = Literal[tuple(sorted(told))]
    return few | None if len(told) > 1 or None in found else few


Keys = dict[tuple[str, ...], dict[str, bool]]
"""Keys of objects by their path, in order, and whether the value was always a whole number or null."""


def keys_of(lines: Iterable[bytes]) -> Keys:
    """The keys of lines, of all objects in them but those in lists."""
    keys: Keys = {}

    def see(item: dict[str, Any], path: tuple[str, ...]) -> None:
        level = keys.setdefault(path, {})
        for key, value in item.items():
            level[key] = level.get(key, True) and (value is None or value.__class__ is int)
            if isinstance(value, dict):
                see(value, (*path, key))

    for line in lines:
        see(msgspec.json.decode(line), ())
    return keys


def _shape(
    struct: Any,
    kinds: Mapping[str, Any],
    words: AbstractSet[str],
    zeros: AbstractSet[str],
    keys: Keys | None,
    *,
    attribute: str = "",
    path: tuple[str, ...] = (),
) -> Any:
    """The struct of lines of one shape: members that were never there may not be there, those of `zeros` may be absent.

    Decoding looks for keys in the order of members, so that they stand in the order of the lines. Where every key of
    an object is known, one that was never there is refused as unknown instead of being looked out for.
    """
    seen = (keys or {}).get(path, {})
    known = {member.encode_name: member for member in msgspec.structs.fields(struct)}
    closed = keys is not None and all(key in known or number for key, number in seen.items())
    members: list[Any] = []
    renamed = {}
    for key in [*seen, *(key for key in known if key not in seen and not closed)]:
        member = known.get(key)
        if member is None:
            if closed:
                members.append((f"u{len(members)}", int | None, None))
                renamed[members[-1][0]] = key
            continue
        name = f"{attribute}{member.name}"
        renamed[member.name] = key
        inner = inner_struct(member.type)
        if inner is None:
            kind = kinds.get(name)
            default: tuple[int | None, ...] = (0,) if name in zeros else ()
            if kind is None or name in words:
                kind, default = kind if kind is not None else type(None), (None,)
            members.append((member.name, kind, *default))
            continue
        below = _shape(inner, kinds, words, zeros, keys, attribute=f"{name}.", path=(*path, key))
        if any(at.startswith(f"{name}.") for at in kinds):
            members.append((member.name, below))
        else:
            members.append((member.name, below | None, None))
    return msgspec.defstruct(
        struct.__name__, members, rename=renamed, gc=False, kw_only=True, forbid_unknown_fields=closed
    )
