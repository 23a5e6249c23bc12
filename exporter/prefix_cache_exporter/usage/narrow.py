"""The arithmetic on lines of one learnt shape, as one generated loop: decoded lines in, sums by their words out.

The function is made of names that msgspec struct members have here (`f0.f2`), never of text of a map.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import values
from .record import NOTHING
from .rules.additive import EXCLUSIVE
from .rules.ttl import by_ttl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from .intake import Row
    from .maps.model import UsageMap
    from .sums import Sums

    Words = Any
    Opened = Callable[[Words, int, Any, Row], Sums | None]
    Run = Callable[[Sequence[Any], list[int], Callable[[Words], Sums | None], Opened], None]

_ZERO = ("extra_input", "extra_output", "reasoning")
_SOURCE = """
def run(lines, odd, find, opened):
    n = -1
    for r in lines:
        n += 1
        {body}
        key = {words}
        s = find(key)
        if s is None:
            s = opened(key, n, r, ({row}))
            if s is None: odd.append(n); continue
        if {total} > s.most: s.add(({row})); continue
        {bounded}
        s.requests += 1
        s.total += {total}
        s.output += {output}
        {cached}
"""


_BOUNDED = """
        if {time} > s.last:
            if {time} > s.high: s.add(({row})); continue
            s.last = {time}
        elif {time} < s.first:
            if {time} < s.low: s.add(({row})); continue
            s.first = {time}
"""


def run_for(place: Mapping[str, str], words: Sequence[str], m: UsageMap, *, time_is_number: bool) -> Run:
    """The loop for a shape.

    It adds each line to the sums that `find` gives for its words, or `opened` for words that it does not know: that is
    told the words, the place of the line, the decoded line and its row, and gives None for words that are not plain.
    `odd` gains the places of lines of such words and of those whose numbers do not add up.

    Args:
        place: the member of each role.
        words: the members that tell lines apart, in order.
        m: the map.
        time_is_number: whether times are whole seconds; else they are text.
    """
    writer = _Writer()
    at = {role: writer.reach(member) for role, member in place.items() if role != "id"}
    names = [writer.reach(member) for member in words]
    declined = "odd.append(n); continue"
    read, write = at.get("read"), at.get("write")
    cached = " + ".join(filter(None, (read, write))) or "0"
    total, uncached = at["input"], "None"
    if m.rule == EXCLUSIVE:
        writer.line(f"a = {at['input']} + {cached}")
        total, uncached = "a", at["input"]
    elif read is not None:
        writer.line(f"u = {at['input']} - {f'({cached})' if write else cached}")
        writer.line(f"if u < 0: {declined}")
        uncached = "u"
    if "uncached" in at:
        writer.line(f"if {at['uncached']} != {uncached}: {declined}")
    if "total" in at and not m.total_ignored:
        writer.line(f"if {at['total']} != {total} + {at['output']}: {declined}")
    for role in _ZERO:
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
    when = at.get("time", "None")
    moment = at.get("time", "")
    if "time" in at and time_is_number:
        when = f"float({when})"
    elif "time" in at:
        writer.line(f"t = moment({when})")
        writer.line(f"if t is None: {declined}")
        when = moment = "t"
    row = (total, read or "None", write or "None", uncached, at["output"], split, when, "None", "None")
    source = _SOURCE.format(
        body="\n        ".join(writer.lines),
        words=names[0] if len(names) == 1 else f"({''.join(f'{name}, ' for name in names)})",
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


def _cached(read: str | None, write: str | None) -> Iterator[str]:
    if read:
        yield f"if {read}: s.read += {read}; s.hits += 1"
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
