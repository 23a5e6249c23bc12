"""The compiled way of what is done to every line where there is one, the Python way elsewhere and for what is left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prefix_cache_exporter.usage.rules.additive import EXCLUSIVE

from . import compiled, narrow
from .members import way_to
from .recent import Recent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from prefix_cache_exporter.usage.maps.model import UsageMap

    from .compiled._adding import Way
    from .narrow import KeysOf, Opened, Run
    from .recent import Memory
    from .sums import Times


def memory_for(bound: int) -> Memory:
    """A memory of the last `bound` ids, by their hashes."""
    return compiled.recent.Recent(bound) if compiled.BUILT else Recent(bound)


def keys_for(struct: Any, member: str, *, hashed: bool) -> KeysOf:
    """A function from decoded lines to a member of each, or to its hash.

    Args:
        struct: what lines are decoded to.
        member: one of its members, or of those within it.
        hashed: whether to hash it.
    """
    if not (compiled.BUILT and hashed):
        return narrow.keys_for(member, hashed=hashed)
    hashes, way = compiled.adding.hashes, way_to(struct, member)
    return lambda lines: memoryview(hashes(lines, way)).cast("q")


def run_for(struct: Any, place: Mapping[str, str], words: Sequence[str], m: UsageMap, *, time_is_number: bool) -> Run:
    """The loop for lines of a shape; the rest as `narrow.run_for` has it."""
    careful = narrow.run_for(place, words, m, time_is_number=time_is_number)
    if not compiled.BUILT:
        return careful

    def way(role: str) -> Way | None:
        return way_to(struct, place[role]) if role in place else None

    ttls = [ttl for ttl in m.write_by_ttl if f"ttl {ttl}" in place]
    try:
        add = compiled.adding.Adder(
            words=tuple(way_to(struct, word) for word in words),
            zeros=tuple(way_to(struct, place[role]) for role in narrow.ZERO if role in place),
            ttls=(*ttls, "unknown"),
            parts=tuple(way_to(struct, place[f"ttl {ttl}"]) for ttl in ttls),
            input=way_to(struct, place["input"]),
            output=way_to(struct, place["output"]),
            reasoning=way("reasoning"),
            read=way("read"),
            write=way("write"),
            total=None if m.total_ignored else way("total"),
            uncached=way("uncached"),
            time=way("time"),
            exclusive=m.rule == EXCLUSIVE,
        ).add
    except TypeError:  # more words than it takes
        return careful

    def run(lines: list[Any], odd: list[Any], known: dict[Any, Any], opened: Opened, times: Times) -> None:
        left, first, last, earliest, latest = add(lines, known, times.bounds)
        times.keep(first, last)
        if earliest <= latest:
            times.beyond(earliest)
            times.beyond(latest)
        if left:
            careful(left, odd, known, opened, times)

    return run
