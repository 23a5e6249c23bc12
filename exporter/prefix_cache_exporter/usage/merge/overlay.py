"""A later line laid over what is known of its request."""

from __future__ import annotations

from typing import Final

from prefix_cache_exporter.usage.record import Fragment

_OVERLAID: Final = tuple(
    name
    for name in Fragment.__struct_fields__
    if name
    not in {
        "key",
        "time",
        "bad_time",
        "split",
        "bad",
        "extra",
        "seen",
        "starts",
        "adds",
        "closed",
        "complete",
        "context",
        "last",
        "own",
    }
)


_COUNTS: Final = (
    "input",
    "extra_input",
    "output",
    "reasoning",
    "extra_output",
    "total",
    "read",
    "write",
    "uncached",
)


def overlay(held: Fragment, later: Fragment) -> None:
    """Lays what a later line said over what is known."""
    if later.adds:
        _add(held, later)
    elif later.write is not None and not later.split and held.split:
        held.split = _restated(held.split, later.write)
    for name in _OVERLAID:
        value = getattr(later, name)
        if value is not None:
            setattr(held, name, value)
    if held.time is None:  # the first moment decides the day that a request belongs to
        held.time, held.bad_time = later.time, held.bad_time or later.bad_time
    if later.split:
        held.split = {**(held.split or {}), **later.split}
    if later.extra:
        held.extra = {**(held.extra or {}), **later.extra}
    if held.bad or later.bad:
        still = {name: problem for name, problem in (held.bad or {}).items() if getattr(later, name, None) is None}
        held.bad = {**still, **(later.bad or {})} or None
    held.seen = held.seen or later.seen
    held.closed = held.closed or later.closed
    held.complete = held.complete or later.complete


def _restated(split: dict[str, int], write: int) -> dict[str, int] | None:
    """What is left of a split by time to live when a later line says that less was written, and not for how long."""
    known = [ttl for ttl, count in split.items() if count]
    if sum(split.values()) <= write:
        return split
    return {known[0]: write} if len(known) == 1 else None


def _add(held: Fragment, later: Fragment) -> None:
    """Makes of what came to a request's numbers those numbers, for sources that log increases."""
    for name in _COUNTS:
        before, more = getattr(held, name), getattr(later, name)
        if before is not None and more is not None:
            setattr(later, name, before + more)
    if held.split and later.split:
        later.split = {ttl: held.split.get(ttl, 0) + later.split.get(ttl, 0) for ttl in {**held.split, **later.split}}
