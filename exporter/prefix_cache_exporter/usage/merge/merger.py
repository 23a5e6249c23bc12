"""Merges the fragments of one source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from prefix_cache_exporter.usage.maps.model import IDLE_SECONDS
from prefix_cache_exporter.usage.normaliser import KEY_BYTES
from prefix_cache_exporter.usage.record import Duplicate, Fragment, Skipped
from prefix_cache_exporter.usage.rules.resolve import resolve

from . import state
from .cumulative import increase
from .neighbours import begins_anew, may_be_told_later
from .pending import Pending
from .scopes import Scopes
from .seen import Seen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from prefix_cache_exporter.usage.maps.model import Stream, UsageMap
    from prefix_cache_exporter.usage.record import Outcome, Quarantined, UsageRecord

_DUPLICATE: Final = Duplicate()
_TOLD: Final = Skipped("ignored", "told_later")
_ORPHAN: Final = Skipped("ignored", "orphan_event")


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
        idle_seconds = usage_map.stream.idle_seconds if usage_map.stream is not None else IDLE_SECONDS
        self._pending = Pending(open_records, settle_seconds, idle_seconds)
        self._scopes = Scopes(scopes)
        self._serial = 0
        self.seen = Seen(dedupe_records, KEY_BYTES)
        self._changed = False

    @property
    def open_records(self) -> int:
        """How many requests are still merging."""
        return len(self._pending.held)

    @property
    def open_keys(self) -> tuple[bytes, ...]:
        """Keys of the requests that are still merging, in the order in which `settle` closes them."""
        return tuple(self._pending.held)

    @property
    def touched(self) -> bytes | None:
        """The key of the request that a line was laid over last, of those that are still merging."""
        return next(reversed(self._pending.held), None)

    def add(self, fragment: Fragment, now: float, scope: str = "") -> tuple[Outcome, ...]:
        """Takes in what a line said; gives what has settled by it, often nothing.

        Args:
            fragment: from `Normaliser.feed`.
            now: seconds, of any clock that goes on over restarts.
            scope: the file it came from: lines without id follow one another in it.
        """
        stream = self._map.stream
        if fragment.context is not None:
            self._scopes.of(scope).learn(fragment.context)
            self._changed = True
            return ()
        if self._map.cumulative:
            return self._summed(fragment, now, scope) if self._grew(fragment, scope) else (_DUPLICATE,)
        if stream is not None:
            return self._merge(fragment, stream, now, scope)
        return self._whole(fragment, now)

    def _summed(self, fragment: Fragment, now: float, scope: str) -> tuple[Outcome, ...]:
        """A line of sums that grew, or of one request's own numbers.

        Until a fork has repeated something known, its lines wait for whoever wrote them first: the file of the session
        that it comes from may be read after it, and may tell of the same requests in other lines.
        """
        place = self._scopes.of(scope)
        if fragment.key is None or fragment.own or place.parent is None or place.met:
            return self._whole(fragment, now)
        if fragment.key in self.seen:
            place.met = self._changed = True
            return (_DUPLICATE,)
        fragment.closed = True
        return self._lay(fragment.key, fragment, now)

    def _whole(self, fragment: Fragment, now: float) -> tuple[Outcome, ...]:
        """A line that tells of a whole request."""
        if fragment.key is None:
            return (self._resolve(fragment, open_end=False),)
        if fragment.key in self.seen:
            return (_DUPLICATE,)
        if may_be_told_later(fragment):
            fragment.closed = fragment.status != "incomplete"
            return self._lay(fragment.key, fragment, now)
        if self._pending.held.pop(fragment.key, None) is not None:  # it says all that the line before it did
            self._changed = True
        self.seen.add(fragment.key)
        return (self._resolve(fragment, open_end=False),)

    def settle(self, now: float, *, everything: bool = False) -> tuple[Outcome, ...]:
        """Settles what has been silent for long enough, or everything."""
        due = tuple(self._pending.held) if everything else self._pending.due(now)
        return tuple(self._close(key) for key in due)

    def end(self, scope: str) -> tuple[Outcome, ...]:
        """Forgets a file that is done, and settles the stream without id that it was in the middle of."""
        known = self._scopes.forget(scope)
        self._changed = self._changed or known is not None
        current = known.current if known is not None else None
        if current is None or current not in self._pending.held or len(current) == KEY_BYTES:
            return ()
        return (self._close(current),)

    def changes(self) -> dict[str, bytes | None]:
        """What to store so that a kill loses nothing: parts that changed since the last call, None for gone ones."""
        changed = self.seen.changes()
        if self._changed:
            held = state.State(self._pending.held, self._scopes.known, self._serial)
            changed["merging"] = state.encode(held)
            self._changed = False
        return changed

    def load(self, parts: Mapping[str, bytes]) -> None:
        """Takes up all parts that were stored.

        Raises:
            msgspec.DecodeError: where they are not what `changes` gave.
        """
        self.seen.load(parts)
        if "merging" in parts:
            stored = state.decode(parts["merging"])
            self._pending.held, self._scopes.known, self._serial = stored.opened, stored.scopes, stored.serial

    def _merge(self, fragment: Fragment, stream: Stream, now: float, scope: str) -> tuple[Outcome, ...]:
        key = fragment.key
        if key is None:
            return self._merge_nameless(fragment, stream, now, scope)
        if stream.sequential:
            self._scopes.of(scope).current = key
            self._changed = True
        if key in self.seen:
            return (_DUPLICATE,)
        return self._lay(key, fragment, now)

    def _merge_nameless(self, fragment: Fragment, stream: Stream, now: float, scope: str) -> tuple[Outcome, ...]:
        """A line without id: of the stream that its file is in the middle of, or a request of its own."""
        if not stream.sequential:
            return (self._resolve(fragment, open_end=False),)
        place = self._scopes.of(scope)
        key = place.current
        held = self._pending.held.get(key) if key is not None else None
        if key is not None and held is not None and not begins_anew(held.fragment, fragment, stream):
            return self._lay(key, fragment, now)
        refused = fragment.complete and fragment.status == "failed"  # before anything of an answer was there
        if key is not None and key in self.seen and stream.starts.parts and not (fragment.starts or refused):
            return (_DUPLICATE if fragment.seen else _ORPHAN,)  # of a request that has been told already
        before = (self._close(key),) if key is not None and held is not None else ()
        if not (stream.any_opens or fragment.starts or fragment.seen or refused):
            return (*before, _ORPHAN)
        self._serial += 1
        place.current = key = self._serial.to_bytes(8, "big")
        return (*before, *self._lay(key, fragment, now))

    def _lay(self, key: bytes, fragment: Fragment, now: float) -> tuple[Outcome, ...]:
        """Lays a fragment over what is known of its request; gives what settles by it."""
        self._changed = True
        if self._pending.lay(key, fragment, now).complete:
            return (self._close(key),)
        if len(self._pending.held) > self._pending.most:
            return (self._close(next(iter(self._pending.held))),)
        return ()

    def _close(self, key: bytes) -> Outcome:
        held = self._pending.held.pop(key)
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

    def _grew(self, fragment: Fragment, scope: str) -> bool:
        """Turns a line's sums into one request's numbers; whether there is anything new."""
        place = self._scopes.of(scope)
        fragment.model, fragment.provider = fragment.model or place.model, fragment.provider or place.provider
        if fragment.own:
            self._changed = self._changed or not place.told
            place.told = True
            return True
        if place.thread is not None:
            thread, place = place.thread, self._scopes.of(place.thread)
            place.session = thread
        before = place.sums
        grew = increase(fragment, place)
        self._changed = self._changed or place.sums is not before
        if grew and place.told and fragment.key is not None:
            self.seen.add(fragment.key)  # a fork repeats the sums, and not the lines that told of them
            return False
        return grew


def outcomes(merger: Merger, fragments: Iterable[Fragment | Skipped], now: float, scope: str = "") -> list[Outcome]:
    """Feeds the items of a line to a merger; what was skipped comes out as it is."""
    found: list[Outcome] = []
    for item in fragments:
        found += merger.add(item, now, scope) if isinstance(item, Fragment) else (item,)
    return found
