"""The arithmetic on lines of one learnt shape, as one generated loop: decoded lines in, sums by their words out.

The function is made of names that msgspec struct members have here (`f0.f2`), never of text of a map.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prefix_cache_exporter.usage import values
from prefix_cache_exporter.usage.record import NOTHING
from prefix_cache_exporter.usage.rules.additive import EXCLUSIVE
from prefix_cache_exporter.usage.rules.ttl import by_ttl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from prefix_cache_exporter.usage.intake import Row
    from prefix_cache_exporter.usage.maps.model import UsageMap

    from .sums import Sums, Times

    Opened = Callable[[tuple[Any, ...], Any, Row], Sums | None]
    KeysOf = Callable[[list[Any]], Sequence[Any]]
    Run = Callable[[list[Any], list[Any], dict[Any, Any], Opened, Times], None]

ZERO = ("extra_input", "extra_output")
"""Counts that make a line special unless they are 0."""
ABSENT_IS_ZERO = frozenset({*ZERO, "reasoning"})
"""Counts of which lines may have none."""
_SOURCE = """
def run(lines, odd, known, opened, times):
    first, last, low, high = times.bounds
    for r in lines:
        {body}
        try:
            s = known{words}
        except KeyError:
            s = opened(({told}), r, ({row}))
            if s is None: odd.append(r); continue
            first, last, low, high = times.narrowed(first, last, s).bounds
        if {total} > s.most: s.add(({row})); continue
        {bounded}
        s.output += {output}
        s.total += {total}
        {cached}
    times.keep(first, last)
"""
# Most times lie between those before, or soon after. Attributes of the sums are looked at for none of these.
_BOUNDED = """
        if {time} > last:
            if {time} > high:
                if not s.low <= {time} <= s.high: s.add(({row})); continue
                times.beyond({time})
            else: last = {time}
        elif {time} < first:
            if {time} < low:
                if not s.low <= {time} <= s.high: s.add(({row})); continue
                times.beyond({time})
            else: first = {time}
"""


def run_for(place: Mapping[str, str], words: Sequence[str], m: UsageMap, *, time_is_number: bool) -> Run:
    """The loop for a shape.

    It adds each line to the sums that are known for its words (a dictionary for each word, within that of the word
    before). Of words that are not, `opened` is told, with the decoded line and its row; it gives their sums, or None
    where they are not plain. `odd` gains lines of such words and those whose numbers do not add up.

    Args:
        place: the member of each role.
        words: the members that tell lines apart, in order.
        m: the map.
        time_is_number: whether times are seconds; else they are text.
    """
    writer = _Writer()
    at = {role: writer.reach(member) for role, member in place.items() if role != "id"}
    names = [writer.reach(member) for member in words]
    declined = "odd.append(r); continue"
    read, write = at.get("read", "0" if m.absent_read_is_zero else None), at.get("write")
    if "reasoning" in at:  # the lane looks at it where it is not in the output
        writer.line(f"o = {at['output']} + {at['reasoning']}")
        at["output"] = "o"
    cached = " + ".join(filter(None, (read, write))) or "0"
    total, uncached = at["input"], "None"
    if m.rule == EXCLUSIVE:
        writer.line(f"a = {at['input']} + {cached}")
        total, uncached = "a", at["input"]
    elif read is not None:
        uncached = f"{at['input']} - {f'({cached})' if write else cached}"
        writer.line(f"if {cached} > {at['input']}: {declined}")
    if "uncached" in at:
        writer.line(f"if {at['uncached']} != {uncached}: {declined}")
    if "total" in at and not m.total_ignored:
        writer.line(f"if {at['total']} != {total} + {at['output']}: {declined}")
    for role in ZERO:
        if role in at:
            writer.line(f"if {at[role]}: {declined}")
    split = "NOTHING"
    ttls = {role.removeprefix("ttl "): name for role, name in at.items() if role.startswith("ttl ")}
    if write is not None:
        pairs = ", ".join(f"{writer.constant(ttl)}: {name}" for ttl, name in ttls.items())
        writer.line("p = NOTHING")
        parts = " or ".join([write, *ttls.values()])
        writer.line(f"if {parts}:")
        writer.line(f"    p, bad = by_ttl({write}, {{{pairs}}})")
        writer.line(f"    if bad: {declined}")
        split = "p"
    moment = at.get("time", "")
    if moment and not time_is_number:
        writer.line(f"t = moment({moment})")
        writer.line(f"if t is None: {declined}")
        moment = "t"
    row = (total, read or "None", write or "None", uncached, at["output"], split, moment or "None", "None", "None")
    source = _SOURCE.format(
        body="\n        ".join(writer.lines),
        words="".join(f"[{name}]" for name in names) or "[()]",
        told="".join(f"{name}, " for name in names) or "(), ",
        row=", ".join(row),
        bounded=_BOUNDED.format(time=moment, row=", ".join(row)) if moment else "",
        total=total,
        output=at["output"],
        cached="\n        ".join(_cached(read, write)),
    )
    scope: dict[str, Any] = {
        "NOTHING": NOTHING,
        "by_ttl": by_ttl,
        "moment": values.seconds_since_epoch,
        **writer.constants,
    }
    exec(compile(source, "<loop of a shape>", "exec"), scope)  # noqa: S102  # made of this module's own names
    run: Run = scope["run"]
    return run


def keys_for(member: str, *, hashed: bool) -> KeysOf:
    """A function from decoded lines to a member of each, or to its hash: quicker than `map` of two.

    Args:
        member: as `run_for` has them.
        hashed: whether to hash it.
    """
    one = f"hash(r.{member})" if hashed else f"r.{member}"
    keys: KeysOf = eval(f"lambda lines: [{one} for r in lines]")  # noqa: S307  # made of this module's own names
    return keys


def _cached(read: str | None, write: str | None) -> Iterator[str]:
    if read:
        yield f"if {read}: s.read += {read}; s.hits += 1"
        yield "else: s.others += 1"
    else:
        yield "s.others += 1"
    if write:
        yield "if p: s.wrote(p)"
        yield f"else: s.unsplit += 1; s.unknown += {write}"


class _Writer:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.constants: dict[str, Any] = {}
        self._names: dict[str, str] = {"": "r"}

    def line(self, text: str) -> None:
        self.lines.append(text)

    def constant(self, value: Any) -> str:
        name = f"k{len(self.constants)}"
        self.constants[name] = value
        return name

    def reach(self, member: str) -> str:
        """A variable that holds a member; objects on the way are fetched once."""
        if member not in self._names:
            outer, _, last = member.rpartition(".")
            holder = self.reach(outer)
            name = self._names[member] = f"v{len(self._names)}"
            self.line(f"{name} = {holder}.{last}")
        return self._names[member]
