"""Fragments to settled records: events of a stream and repeated lines merge by id, field by field.

A later value that is not null wins, an explicit 0 included, and nothing is ever added: usage in stream events is
cumulative (https://github.com/envoyproxy/ai-gateway/issues/2279, https://github.com/BerriAI/litellm/pull/40743). A
record settles when its format says that nothing more follows, or after it has been silent for a while; repeats of a
settled one are duplicates. Without an id each record is distinct, save for events of a stream that follow one another
in a file.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import msgspec

from .maps.model import IDLE_SECONDS
from .normaliser import KEY_BYTES
from .record import Duplicate, Fragment, Quarantined, Skipped, UsageRecord
from .rules.resolve import resolve
from .seen import Seen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .maps.model import Stream, UsageMap

Outcome = UsageRecord | Quarantined | Duplicate | Skipped  # what becomes of a fragment

_DUPLICATE: Final = Duplicate()
_TOLD: Final = Skipped("ignored", "told_later")
_ORPHAN: Final = Skipped("ignored", "orphan_event")
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
        "closed",
        "complete",
        "context",
        "last",
    }
)
_CUMULATIVE: Final = ("input", "output", "reasoning", "total", "read", "write")


class Scope(msgspec.Struct, gc=False):
    """What is known of one file that its lines take for granted."""

    current: bytes | None = None
    session: str | None = None
    model: str | None = None
    provider: str | None = None
    sums: dict[str, int] | None = None


class Open(msgspec.Struct, gc=False):
    """A request that is still merging."""

    fragment: Fragment
    touched: float


class _State(msgspec.Struct):
    """What a kill must not lose, beside the memory of settled requests. It holds no id, only hashes."""

    opened: dict[bytes, Open]
    scopes: dict[str, Scope]
    serial: int


class Merger:
    """Merges the fragments of one source; not thread-safe.

    Args:
        usage_map: the format's facts.
        input_includes_cache: the source's override of the additive rule.
        settle_seconds: how long a request whose output is final waits for more lines.
        dedupe_records: how many settled requests are remembered.
        open_records: how many may be merging at once; beyond it the longest silent one settles early.
        scopes: how many files are remembered.
    """

    def __init__(
        self,
        usage_map: UsageMap,
        *,
        input_includes_cache: bool | None = None,
        settle_seconds: float = 10.0,
        dedupe_records: int = 100_000,
        open_records: int = 10_000,
        scopes: int = 4096,
    ) -> None:
        self._map = usage_map
        self._override = input_includes_cache
        self._settle_seconds = settle_seconds
        self._open_records = open_records
        self._most_scopes = scopes
        self._open: dict[bytes, Open] = {}
        self._scopes: dict[str, Scope] = {}
        self._serial = 0
        self.seen = Seen(dedupe_records, KEY_BYTES)
        self._changed = False

    @property
    def open_records(self) -> int:
        """How many requests are still merging."""
        return len(self._open)

    @property
    def open_keys(self) -> tuple[bytes, ...]:
        """Keys of the requests that are still merging, in the order in which `settle` closes them."""
        return tuple(self._open)

    @property
    def touched(self) -> bytes | None:
        """The key of the request that a line was laid over last, of those that are still merging."""
        return next(reversed(self._open), None)

    def add(self, fragment: Fragment, now: float, scope: str = "") -> tuple[Outcome, ...]:
        """Takes in what a line said; gives what has settled by it, often nothing.

        Args:
            fragment: from `Normaliser.feed`.
            now: seconds, of any clock that goes on over restarts.
            scope: the file it came from: lines without id follow one another in it.
        """
        stream = self._map.stream
        if fragment.context is not None:
            self._learn(fragment.context, scope)
            return ()
        if self._map.cumulative and not self._increase(fragment, scope):
            return (_DUPLICATE,)
        if stream is not None:
            return self._merge(fragment, stream, now, scope)
        return self._whole(fragment, now)

    def _whole(self, fragment: Fragment, now: float) -> tuple[Outcome, ...]:
        """A line that tells of a whole request."""
        if fragment.key is None:
            return (self._resolve(fragment, open_end=False),)
        if fragment.key in self.seen:
            return (_DUPLICATE,)
        if _may_be_told_later(fragment):
            fragment.closed = fragment.status != "incomplete"
            return self._lay(fragment.key, fragment, now)
        if self._open.pop(fragment.key, None) is not None:  # it says all that the line before it did
            self._changed = True
        self.seen.add(fragment.key)
        return (self._resolve(fragment, open_end=False),)

    def settle(self, now: float, *, everything: bool = False) -> tuple[Outcome, ...]:
        """Settles what has been silent for long enough, or everything."""
        if not self._open:
            return ()
        stream = self._map.stream
        idle = stream.idle_seconds if stream is not None else IDLE_SECONDS
        patience = {True: self._settle_seconds, False: max(self._settle_seconds, idle)}
        due = [
            key
            for key, held in self._open.items()
            if everything
            or now - held.touched >= patience[held.fragment.closed]
            or now < held.touched - patience[False]
        ]
        return tuple(self._close(key) for key in due)

    def end(self, scope: str) -> tuple[Outcome, ...]:
        """Forgets a file that is done, and settles the stream without id that it was in the middle of."""
        known = self._scopes.pop(scope, None)
        self._changed = self._changed or known is not None
        current = known.current if known is not None else None
        if current is None or current not in self._open or len(current) == KEY_BYTES:
            return ()
        return (self._close(current),)

    def changes(self) -> dict[str, bytes | None]:
        """What to store so that a kill loses nothing: parts that changed since the last call, None for gone ones."""
        changed = self.seen.changes()
        if self._changed:
            # The raw id goes no further: a record that was open over a restart has none.
            held = {
                key: Open(msgspec.structs.replace(one.fragment, id=None), one.touched)
                for key, one in self._open.items()
            }
            changed["merging"] = msgspec.msgpack.encode(_State(held, self._scopes, self._serial))
            self._changed = False
        return changed

    def load(self, parts: Mapping[str, bytes]) -> None:
        """Takes up all parts that were stored.

        Raises:
            msgspec.DecodeError: where they are not what `changes` gave.
        """
        self.seen.load(parts)
        if "merging" in parts:
            state = msgspec.msgpack.decode(parts["merging"], type=_State)
            self._open, self._scopes, self._serial = state.opened, state.scopes, state.serial

    def _merge(self, fragment: Fragment, stream: Stream, now: float, scope: str) -> tuple[Outcome, ...]:
        key = fragment.key
        if key is None:
            return self._merge_nameless(fragment, stream, now, scope)
        if stream.sequential:
            self._scope(scope).current = key
            self._changed = True
        if key in self.seen:
            return (_DUPLICATE,)
        return self._lay(key, fragment, now)

    def _merge_nameless(self, fragment: Fragment, stream: Stream, now: float, scope: str) -> tuple[Outcome, ...]:
        """A line without id: of the stream that its file is in the middle of, or a request of its own."""
        if not stream.sequential:
            return (self._resolve(fragment, open_end=False),)
        place = self._scope(scope)
        key = place.current
        held = self._open.get(key) if key is not None else None
        if key is not None and held is not None and not _begins_anew(held.fragment, fragment, stream):
            return self._lay(key, fragment, now)
        if key is not None and key in self.seen and stream.starts.parts and not fragment.starts:
            return (_DUPLICATE if fragment.seen else _ORPHAN,)  # of a request that has been told already
        before = (self._close(key),) if key is not None and held is not None else ()
        if not (stream.any_opens or fragment.starts or fragment.seen):
            return (*before, _ORPHAN)
        self._serial += 1
        place.current = key = self._serial.to_bytes(8, "big")
        return (*before, *self._lay(key, fragment, now))

    def _lay(self, key: bytes, fragment: Fragment, now: float) -> tuple[Outcome, ...]:
        """Lays a fragment over what is known of its request; gives what settles by it."""
        self._changed = True
        held = self._open.pop(key, None)
        if held is None:
            held = Open(fragment, now)
        else:
            overlay(held.fragment, fragment)
            held.touched = now
        self._open[key] = held  # at the end: the front has been silent longest
        if held.fragment.complete:
            return (self._close(key),)
        if len(self._open) > self._open_records:
            return (self._close(next(iter(self._open))),)
        return ()

    def _close(self, key: bytes) -> Outcome:
        held = self._open.pop(key)
        self._changed = True
        known = len(key) == KEY_BYTES and not self.seen.add(key)
        stream = self._map.stream
        if stream is None and known:
            return _TOLD  # by the line that has its usage, which went by the fast lane
        return self._resolve(
            held.fragment, open_end=stream is not None and stream.unfinished_is_partial and not held.fragment.closed
        )

    def _resolve(self, fragment: Fragment, *, open_end: bool) -> UsageRecord | Quarantined:
        return resolve(fragment, self._map, self._override, open_end)

    def _scope(self, name: str) -> Scope:
        known = self._scopes.pop(name, None)
        if known is None:
            known = Scope()
            if len(self._scopes) >= self._most_scopes:
                del self._scopes[next(iter(self._scopes))]
        self._scopes[name] = known
        return known

    def _learn(self, context: Mapping[str, str], scope: str) -> None:
        place = self._scope(scope)
        self._changed = True
        for name, value in context.items():
            if name != "session" or place.session is None:  # a fork repeats its parent's first line after its own
                setattr(place, name, value)

    def _increase(self, fragment: Fragment, scope: str) -> bool:
        """Turns sums over the file so far into one request's numbers; whether there is anything new.

        A file that repeats another's history (a fork or a resumed session) repeats its sums, so they make the key:
        https://github.com/ccusage/ccusage/issues/1288. Only a session's first request could look the same by chance.
        """
        place = self._scope(scope)
        fragment.model, fragment.provider = fragment.model or place.model, fragment.provider or place.provider
        sums = {name: count for name in _CUMULATIVE if (count := getattr(fragment, name)) is not None}
        if not sums:
            return True
        before, last = place.sums, fragment.last
        if sums == before:
            return False
        self._changed = True
        place.sums = sums
        anew = before is None or any(count < before.get(name, 0) for name, count in sums.items())
        if anew and last:
            increase = last  # what came before it is in another file, or the sums began again
        else:
            increase = {
                name: count - (0 if anew or before is None else before.get(name, 0)) for name, count in sums.items()
            }
        for name in _CUMULATIVE:
            setattr(fragment, name, increase.get(name))
        fragment.key = _key_of_sums(sums, None if anew else before, place.session if anew else None)
        return True


def overlay(held: Fragment, later: Fragment) -> None:
    """Lays what a later line said over what is known."""
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


def _may_be_told_later(fragment: Fragment) -> bool:
    """Whether another line with the same id may still bring the usage that this one lacks.

    Background responses are logged while they run and when they have ended; chunks of streams in a log of whole
    responses have usage on the last one. The first such line must not make duplicates of those that follow.
    """
    return not fragment.seen and not fragment.replay and fragment.status not in {"failed", "cancelled"}


def _begins_anew(held: Fragment, later: Fragment, stream: Stream) -> bool:
    """Whether a line without id belongs to another request than the lines before it.

    Where the format marks beginnings, only they count. Elsewhere counts never fall within a request, its prompt has one
    length, and nothing but usage follows usage.
    """
    if later.starts or stream.starts.parts:
        return later.starts
    if held.closed and not later.seen:
        return True
    pairs = ((held.output, later.output), (held.total, later.total))
    fell = any(before is not None and after is not None and after < before for before, after in pairs)
    return fell or (held.input is not None and later.input is not None and held.input != later.input)


def _key_of_sums(sums: Mapping[str, int], before: Mapping[str, int] | None, session: str | None) -> bytes:
    text = repr((sorted(sums.items()), sorted((before or {}).items()), session))
    return blake2b(text.encode(), digest_size=KEY_BYTES).digest()


def outcomes(merger: Merger, fragments: Iterable[Fragment | Skipped], now: float, scope: str = "") -> list[Outcome]:
    """Feeds the items of a line to a merger; what was skipped comes out as it is."""
    found: list[Outcome] = []
    for item in fragments:
        found += merger.add(item, now, scope) if isinstance(item, Fragment) else (item,)
    return found
