"""The members of the structs that lines are decoded to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import MemberDescriptorType


class Leaf(NamedTuple):
    """A member that the fast lane looks at."""

    steps: tuple[str, ...]
    attribute: str
    type: Any


def leaves(struct: Any, steps: tuple[str, ...] = (), attribute: str = "") -> Iterator[Leaf]:
    """The members of a struct and of those within it."""
    for member in msgspec.structs.fields(struct):
        inner = inner_struct(member.type)
        path, name = (*steps, member.encode_name), f"{attribute}{member.name}"
        if inner is not None:
            yield from leaves(inner, path, f"{name}.")
        else:
            yield Leaf(path, name, member.type)


def inner_struct(kind: Any) -> Any:
    """The struct in a member's type, if it is an object."""
    options = (kind, *get_args(kind))
    return next((one for one in options if isinstance(one, type) and issubclass(one, msgspec.Struct)), None)


def value_of(one: Any, attribute: str) -> Any:
    """A member of a decoded line; None where it is null or not there."""
    for name in attribute.split("."):
        if one is None:
            return None
        one = getattr(one, name)
    return None if isinstance(one, msgspec.Raw) and bytes(one) == b"null" else one


def way_to(struct: Any, attribute: str) -> tuple[MemberDescriptorType, ...]:
    """The slots through which a member is reached, one for each struct on the way."""
    way = []
    for name in attribute.split("."):
        way.append(vars(struct)[name])
        struct = next(inner_struct(member.type) for member in msgspec.structs.fields(struct) if member.name == name)
    return tuple(way)
