"""The arithmetic on lines of one learnt shape, as one generated loop: decoded lines in, rows by their words out.

The function is made of names that msgspec struct members have here (`f0.f2`), never of text of a map.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import rules, values
from .record import NOTHING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .intake import Row
    from .maps import UsageMap

    Run = Callable[[Sequence[Any], list[int]], tuple[dict[tuple[Any, ...], list[Row]], dict[tuple[Any, ...], int]]]

_ZERO = ("extra_input", "extra_output", "reasoning")
_SOURCE = """
def run(lines, odd):
    rows, heads, adders = {{}}, {{}}, {{}}
    adder = adders.get
    n = -1
    for r in lines:
        n += 1
        {body}
        key = ({words})
        add = adder(key)
        if add is None:
            some = rows[key] = []
            heads[key] = n
            add = adders[key] = some.append
        add(({row}))
    return rows, heads
"""


def run_for(place: Mapping[str, str], words: Sequence[str], m: UsageMap, *, time_is_number: bool) -> Run:
    """The loop for a shape.

    It gives rows by words, and where the first line with these words stands; `odd` gains the places of lines whose
    numbers do not add up.

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
    if m.rule == rules.EXCLUSIVE:
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
        writer.line("s = NOTHING")
        parts = " or ".join([write, *ttls.values()])
        writer.line(f"if {parts}:")
        writer.line(f"    s, bad = by_ttl({write}, {{{pairs}}})")
        writer.line(f"    if bad: {declined}")
        split = "s"
    when = at.get("time", "None")
    if "time" in at and time_is_number:
        when = f"float({when})"
    elif "time" in at:
        writer.line(f"t = moment({when})")
        writer.line(f"if t is None: {declined}")
        when = "t"
    row = (total, read or "None", write or "None", uncached, at["output"], split, when, "None", "None")
    source = _SOURCE.format(
        body="\n        ".join(writer.lines), words="".join(f"{name}, " for name in names), row=", ".join(row)
    )
    scope: dict[str, Any] = {
        "NOTHING": NOTHING,
        "by_ttl": rules.by_ttl,
        "moment": values.seconds_since_epoch,
        **writer.constants,
    }
    exec(compile(source, "<loop of a shape>", "exec"), scope)  # noqa: S102  # made of this module's own names
    run: Run = scope["run"]
    return run


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
