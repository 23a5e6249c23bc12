"""Lines of one source to what became of them: the fast lane for plain lines, fragments and merging for the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec

from .lane.typed import lane_for
from .merge.merger import Merger, outcomes
from .normaliser import Normaliser, digester
from .paths import parse_path
from .record import Duplicate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .maps.model import UsageMap
    from .record import Outcome, UsageRecord

_DUPLICATE = Duplicate()

_Count: TypeAlias = int | None
_Seconds: TypeAlias = float | None
Row = tuple[int, _Count, _Count, _Count, int, "Mapping[str, int]", _Seconds, _Seconds, _Seconds]
"""Of one record: total input, read, write, uncached and output tokens, writes by time to live, time, time to first
token and duration in seconds. Read and uncached are each None in all rows of a group or in none; where the uncached
tokens are, so are those read."""


class Group(NamedTuple):
    """Plain records that differ in nothing but their rows.

    Attributes:
        sample: what they have in common; its token counts, time, id and spans are None.
        rows: one per record, in order.
    """

    sample: UsageRecord
    rows: list[Row]


class Intake:
    """Normaliser and merger of one source, as one; not thread-safe. Arguments as theirs.

    Attributes:
        lane: reads plain lines; None where the format has none.
    """

    def __init__(
        self,
        usage_map: UsageMap,
        *,
        input_includes_cache: bool | None = None,
        fields: Mapping[str, str] | None = None,
        provider: str | None = None,
        models: Mapping[str, str] | None = None,
        protect: Callable[[dict[str, str]], dict[str, str]] | None = None,
        hash_key: bytes = b"",
        keep_raw: bool = False,
        settle_seconds: float = 10.0,
        dedupe_records: int = 100_000,
        open_records: int = 10_000,
    ) -> None:
        self.normaliser = Normaliser(
            usage_map,
            fields=fields,
            provider=provider,
            models=models,
            protect=protect,
            hash_key=hash_key,
            keep_raw=keep_raw,
        )
        self.merger = Merger(
            usage_map,
            input_includes_cache=input_includes_cache,
            settle_seconds=settle_seconds,
            dedupe_records=dedupe_records,
            open_records=open_records,
        )
        self._with_status = usage_map.identity_has_status
        self.lane = lane_for(
            usage_map,
            override=input_includes_cache,
            fields={name: parse_path(path) for name, path in (fields or {}).items()},
            provider=provider,
            models=models or {},
            protect=protect,
        )
        self._decoder = msgspec.json.Decoder(self.lane.struct) if self.lane is not None else None
        self._digest = digester(hash_key)

    def take(self, lines: Sequence[bytes], now: float, scope: str = "") -> list[Outcome]:
        """What lines came to, in order; records of streams often settle later. Never raises.

        Args:
            lines: whole lines or JSON values of one file, in order.
            now: seconds, of any clock that goes on over restarts.
            scope: the file, opaque: lines without id follow one another in it.
        """
        if self._decoder is None or self.lane is None:
            return [outcome for line in lines for outcome in self.slowly(line, now, scope)]
        decode, lane, remember, digest = self._decoder.decode, self.lane.record, self.merger.seen.add, self._digest
        found: list[Outcome] = []
        for line in lines:
            try:
                record = lane(decode(line))
            except (ValueError, RecursionError):
                record = None
            if record is None:
                found += self.slowly(line, now, scope)
            elif record.id is None or remember(
                digest((f"{record.id}\0{record.status}" if self._with_status else record.id).encode()).digest()
            ):
                found.append(record)
            else:
                found.append(_DUPLICATE)
        return found

    def gather(self, lines: Sequence[bytes], now: float, scope: str = "") -> tuple[list[Group], list[Outcome]]:
        """What lines came to, plain records gathered by what they have in common; the same sums as `take`.

        For counting many lines at once: rows of a group instead of an object per record. Never raises.

        Returns:
            groups of plain records, and what became of the other lines, in order.
        """
        if self._decoder is None or self.lane is None:
            return [], self.take(lines, now, scope)
        groups: list[Group] = []
        found: list[Outcome] = []
        new: list[bytes] = []
        seen = self.merger.seen

        def opened(sample: UsageRecord) -> Callable[[Row], None]:
            rows: list[Row] = []
            groups.append(Group(sample, rows))
            return rows.append

        def odd(number: int) -> None:
            found.extend(self.slowly(lines[number], now, scope))

        repeats = self.lane.gather(
            self._decoded(lines), odd, opened, self._digest, seen.keys, seen.keys.add, new.append
        )
        seen.added(new)
        found += [_DUPLICATE] * repeats
        return groups, found

    def _decoded(self, lines: Sequence[bytes]) -> Sequence[Any]:
        """Lines as the lane's struct, None where they are not of that shape."""
        assert self._decoder is not None  # noqa: S101  # for mypy: the caller has looked
        decode = self._decoder.decode
        try:
            return [decode(line) for line in lines]
        except (ValueError, RecursionError):
            pass
        return [self._one(line) for line in lines]

    def _one(self, line: bytes) -> Any:
        try:
            return self._decoder.decode(line) if self._decoder is not None else None
        except (ValueError, RecursionError):
            return None

    def slowly(self, line: bytes, now: float, scope: str = "") -> list[Outcome]:
        """What one line came to, by the general way alone."""
        return outcomes(self.merger, self.normaliser.feed(line), now, scope)

    def settle(self, now: float, *, everything: bool = False) -> tuple[Outcome, ...]:
        """What has been silent for long enough."""
        return self.merger.settle(now, everything=everything)
