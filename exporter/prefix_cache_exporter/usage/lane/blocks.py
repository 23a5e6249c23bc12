"""Whole blocks of plain lines at once, for logs that are read from front to end: columns instead of records.

A log's lines are mostly of one shape. Of all members that the fast lane of `typed.py` looks at, this one learns which
are ever there, decodes blocks of lines to just those in one call, and does the arithmetic column by column. What a
combination of words means (model, service tier, status …) is asked of the fast lane once for each; every other line
(a member more or less, a number that is none, sums that do not agree) is handed back for the general way. A property
test holds both ways to the same sums.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import compress
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from prefix_cache_exporter.usage import values
from prefix_cache_exporter.usage.intake import Group
from prefix_cache_exporter.usage.record import UsageRecord

from .choice import memory_for
from .members import leaves, value_of
from .samples import REMEMBERED, Samples
from .shape import full, keys_of, plan_for, roles_of, words_of
from .sums import NOTHING_AT_ALL, Sums, Times

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from prefix_cache_exporter.usage.intake import Row
    from prefix_cache_exporter.usage.maps.model import UsageMap
    from prefix_cache_exporter.usage.paths import Path
    from prefix_cache_exporter.usage.record import Outcome

    from .recent import Memory
    from .shape import Plan
    from .sums import Bounds
    from .typed import Lane

_LEARN_FROM = 200
_ENOUGH = 100
"""Lines that tell what to expect of all others."""
_CHANCES = 3
"""How many blocks may hold what was not expected, before nothing is expected any more."""
_PATIENCE = 5
"""How many blocks may have no shape, or another one than was learnt, before all is left to the general way."""


class Taken(NamedTuple):
    """What a block came to.

    Attributes:
        groups: plain records by what they have in common.
        odd: lines for the general way, in order.
        repeats: records whose id was there before.
        lines: how many lines the block had.
        sums: plain records that were summed up, now and before; the rest of them wait in `Blocks.sums`.
    """

    groups: list[Group]
    odd: list[bytes]
    repeats: int
    lines: int
    sums: list[Sums]


@dataclass(slots=True)
class _Plain:
    """Lines of a block that have its shape, side by side: decoded, as they stand, their numbers in it, their ids.

    As they stand they are there only where somebody had to look.
    """

    decoded: list[Any]
    numbers: Sequence[int]
    lines: list[bytes] = field(default_factory=list)
    ids: Sequence[Any] = ()

    def keep(self, kept: Sequence[bool]) -> None:
        """Leaves some lines out."""
        self.decoded, self.lines = list(compress(self.decoded, kept)), list(compress(self.lines, kept))
        self.numbers, self.ids = list(compress(self.numbers, kept)), list(compress(self.ids, kept))


class Blocks:
    """Takes blocks of lines of one source in.

    Args:
        usage_map: the map of its format.
        lane: the fast lane of the format, None where it has none.
        fields: asked-for fields and where they stand.
        protect: which of these may be kept, and as what; as the lane has it.
        dedupe_records: how many ids to remember at least.
        memory: remembers ids instead of one of its own.
        label: what to keep beside the sums of records like one, and which to sum, given its row and the times to live
            for which they may write; None where it needs all their rows. Without it, there are rows of all.

    Attributes:
        window: the times of records to sum, for sums that begin; records outside are given as rows.
        able: whether the format has plain lines.
        recent: ids of the records that were taken in here, and of those that the caller adds.
        times: the times of what is summed up.
    """

    def __init__(
        self,
        usage_map: UsageMap,
        lane: Lane | None,
        *,
        fields: Mapping[str, Path] | None = None,
        protect: Callable[[dict[str, str]], dict[str, str]] | None = None,
        dedupe_records: int = 100_000,
        memory: Memory | None = None,
        label: Callable[[UsageRecord, Row, AbstractSet[str]], tuple[Any, Bounds]] | None = None,
    ) -> None:
        self.recent: Memory = memory_for(dedupe_records) if memory is None else memory
        self._map = usage_map
        self._roles: Mapping[tuple[Any, ...], str] = roles_of(usage_map)
        asked = {full(path, usage_map) for path in (*words_of(usage_map), *(fields or {}).values())}
        self._lane = lane if not usage_map.identity_has_status and asked.isdisjoint(self._roles) else None
        self.able = self._lane is not None
        self._plan: Plan | None = None
        self._failures = 0
        self._chances = _CHANCES
        self._label, self.window = label, (-inf, inf)
        self._known: dict[Any, Any] = {}
        self._combinations = 0
        self._sums: dict[int, Sums] = {}
        self._touched: list[Sums] = []
        self.times = Times()
        self._block: bytes | memoryview = b""
        self._split: list[bytes] = []
        self._decoded: list[Any] = []
        self._places: dict[int, int] = {}
        self._fields = {name: full(path, usage_map) for name, path in (fields or {}).items()}
        if self._lane is not None:
            self._general = msgspec.json.Decoder(self._lane.struct).decode
            usage = usage_map.usage[0]
            self._ids = [path if path.absolute else path.within(usage) for path in usage_map.id]
            self._leaves = list(leaves(self._lane.struct))
            self._samples = Samples(self._lane, self._general, protect or dict)

    def take(self, block: bytes | memoryview) -> Taken:
        """What a block of whole lines comes to; nothing of it is kept. Never raises."""
        if self._plan is None:
            self._learn(block)
        if self._plan is None:
            lines = lines_of(block)
            return Taken([], lines, 0, len(lines), [])
        odd: dict[int, bytes] = {}
        try:
            decoded = self._plan.decoder.decode_lines(block)
            plain = _Plain(decoded, range(len(decoded)))
        except (ValueError, RecursionError):
            plain, odd = self._one_by_one(block)
            self._chances -= self._plan.close
        count = len(plain.decoded) + len(odd)
        groups, repeats = self._counted(plain, block, odd) if plain.decoded else ([], 0)
        if len(odd) * 2 > count or (self._plan.close and self._chances <= 0):  # the shape has changed
            self._plan = None
        sums = self.sums() if len(self._sums) >= REMEMBERED else []
        return Taken(groups, [odd[number] for number in sorted(odd)], repeats, count, sums)

    def _one_by_one(self, block: bytes | memoryview) -> tuple[_Plain, dict[int, bytes]]:
        """Lines of the shape; the others by their number in the block."""
        assert self._plan is not None  # noqa: S101  # for mypy: the caller has looked
        decode = self._plan.decoder.decode
        decoded, lines, numbers, odd = [], [], [], {}
        for number, line in enumerate(bytes(block).split(b"\n")):
            try:
                decoded.append(decode(line))
                lines.append(line)
                numbers.append(number)
            except (ValueError, RecursionError):
                if line.strip():
                    odd[number] = line
        return _Plain(decoded, numbers, lines), odd

    def _counted(self, plain: _Plain, block: bytes | memoryview, odd: dict[int, bytes]) -> tuple[list[Group], int]:
        """Lines of the shape to groups; what is not plain after all goes to `odd`."""
        assert self._plan is not None  # noqa: S101  # for mypy: the caller has looked
        repeats = 0
        if self._plan.keys is not None:
            plain.ids = self._plan.keys(plain.decoded)
            second = self._after(odd, plain) if odd else ()
            if second:  # of lines with one id, the first counts: the general way decides, and has them in order
                odd |= {plain.numbers[n]: plain.lines[n] for n in second}
                plain.keep([n not in second for n in range(len(plain.ids))])
            if not self.recent.add_all(plain.ids):
                fresh = [self.recent.add(one) for one in plain.ids]
                repeats = fresh.count(False)
                plain.lines = plain.lines or lines_of(block)
                plain.keep(fresh)
        doubtful: list[Any] = []
        self._block, self._split, self._decoded = block, plain.lines, plain.decoded
        self._plan.run(plain.decoded, doubtful, self._known, self._opened, self.times)
        if doubtful:
            places = sorted(map(self._place, doubtful))
            lines = self._split or lines_of(block)
            odd |= {plain.numbers[n]: lines[n] for n in places}
            if plain.ids:  # the general way has a memory of its own
                self.recent.drop([plain.ids[n] for n in places])
        self._places = {}
        self._block, self._split, self._decoded = b"", [], []
        groups = [Group(sums.sample, sums.take_rows()) for sums in self._touched]
        self._touched.clear()
        return groups, repeats

    def _after(self, odd: Mapping[int, bytes], plain: _Plain) -> AbstractSet[int]:
        """Places of plain lines whose id an odd line before them has."""
        first: dict[str | int, int] = {}
        for number, line in odd.items():
            name = self._id_of(line)
            if name is not None:
                first.setdefault(self._key(name), number)
        if first.keys().isdisjoint(plain.ids):
            return frozenset()
        numbered = enumerate(zip(plain.ids, plain.numbers, strict=True))
        return {n for n, (one, number) in numbered if first.get(one, number) < number}

    def _id_of(self, line: bytes) -> str | None:
        try:
            record = msgspec.json.decode(line)
        except (ValueError, RecursionError):
            return None
        return next(filter(None, (values.word(path.get(record)) for path in self._ids)), None)

    def _place(self, one: Any) -> int:
        """Where a decoded line stands in its block."""
        if not self._places:
            self._places = {id(line): n for n, line in enumerate(self._decoded)}
        return self._places[id(one)]

    def _line(self, one: Any) -> bytes:
        self._split = self._split or lines_of(self._block)
        return self._split[self._place(one)]

    def _opened(self, words: tuple[Any, ...], one: Any, numbers: Row) -> Sums | None:
        """The sums of lines with some words; None where they are not plain."""
        assert self._plan is not None  # noqa: S101  # for mypy: one of its lines is at hand
        row, (first, last) = self._plan.getter(one), self._plan.words
        said = {name: row[at] for name, at in self._plan.fields}
        sample = self._samples.of(row[first:last], said, numbers, lambda: self._line(one))
        if sample is None:
            return None
        sums = self._sums.get(id(sample))
        if sums is None:
            label, bounds = (
                (None, NOTHING_AT_ALL) if self._label is None else self._label(sample, numbers, self._plan.ttls)
            )
            sums = self._sums[id(sample)] = Sums(
                sample,
                label,
                self._touched.append,
                reported=numbers[1] is not None,
                bounds=bounds.within(*self.window),
                time=numbers[6],
            )
        self._know(words, sums)
        return sums

    def _know(self, words: tuple[Any, ...], sums: Sums) -> None:
        self._combinations += 1
        if self._combinations > REMEMBERED:
            self._known.clear()
            self._combinations = 1
        within = self._known
        for word in words[:-1]:
            within = within.setdefault(word, {})
        within[words[-1]] = sums

    def repeats(self, outcome: Outcome) -> bool:
        """Whether a record of the general way has the id of one that came before, here or there; it is remembered."""
        if not self.able or not isinstance(outcome, UsageRecord) or outcome.id is None:
            return False
        return not self.recent.add(self._key(outcome.id))

    def _key(self, name: str) -> str | int:
        """What stands for an id in the memory."""
        return hash(name) if self.recent.hashes else name

    def sums(self) -> list[Sums]:
        """What has been summed up since the last call."""
        found = [sums for sums in self._sums.values() if sums.requests]
        self._sums.clear()
        self._known.clear()
        self.times.reset()
        return found

    def _learn(self, block: bytes | memoryview) -> None:
        """Learns the shape of a log from the lines that the fast lane takes."""
        if self._lane is None or self._failures >= _PATIENCE:
            return
        self._failures += 1
        seen, kept = [], []
        for line in bytes(block).split(b"\n", _LEARN_FROM)[:_LEARN_FROM]:
            try:
                one = self._general(line)
            except (ValueError, RecursionError):
                continue
            if self._lane.record(one) is not None:
                seen.append(one)
                kept.append(line)
        if not seen:
            return
        found = {leaf: [value_of(one, leaf.attribute) for one in seen] for leaf in self._leaves}
        live = {leaf: values for leaf, values in found.items() if any(value is not None for value in values)}
        keys = keys_of(kept) if len(kept) >= _ENOUGH and self._chances > 0 else None
        self._plan = plan_for(
            self._lane.struct, live, self._roles, self._map, self._fields, keys=keys, hashed=self.recent.hashes
        )
        self._samples.clear()
        self._known.clear()


def lines_of(block: bytes | memoryview) -> list[bytes]:
    """The lines of a block that are not blank."""
    return [line for line in bytes(block).split(b"\n") if line.strip()]
