"""The one door through which every number reaches the page.

Workers hand in changes; each moves its counters and its position together or not at all. A commit writes them in one
transaction and only then shows them, so a killed process never shows a number that its successor would take back.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from . import measures
from .ledger import Amount, Dirt, Key, Ledger, Parts, Release
from .room import Room

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from .labels import Limits
    from .measures import Family
    from .state import Store

_log = logging.getLogger(__name__)

_AGAIN_SECONDS = 60.0
"""Where nothing could be forgotten, how long nobody looks again: to look costs as much as a scrape."""
_TOLD_APART = frozenset({"source", "reason"})
"""Labels by which totals are asked for."""

Payload: TypeAlias = "bytes | Callable[[], bytes] | None"
"""A position; one that costs something to make is given as a function, which is called when it is written."""
Labels = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Change:
    """One atomic step of one worker: increments, and the position they bring it to."""

    parts: dict[tuple[Family, Labels], Parts] = field(default_factory=lambda: defaultdict(dict))
    cursors: dict[tuple[str, str], Payload] = field(default_factory=dict)

    def add(self, family: Family, labels: Mapping[str, str], amount: Amount, part: str = "") -> None:
        """Adds to a counter, or to one part of a histogram; 0 makes the series appear at 0."""
        self.add_to((family, tuple(labels.items())), amount, part)

    def add_to(self, series: tuple[Family, Labels], amount: Amount, part: str = "") -> None:
        """The same for a series that the caller keeps: putting labels together costs more than adding."""
        parts = self.parts[series]
        parts[part] = parts.get(part, 0) + amount

    def observe(self, family: Family, labels: Mapping[str, str], value: float, bounds: Sequence[float]) -> None:
        """Adds one observation to a histogram whose finite upper bounds are `bounds`, ascending."""
        parts = self.parts[family, tuple(labels.items())]
        place = bisect_left(bounds, value)
        for index, bound in enumerate(bounds):
            text = bound_text(bound)
            parts[text] = parts.get(text, 0) + (index >= place)
        parts["+Inf"] = parts.get("+Inf", 0) + 1
        parts["sum"] = parts.get("sum", 0) + value

    def cursor(self, kind: str, name: str, payload: Payload) -> None:
        """Sets a durable position; None forgets it."""
        self.cursors[kind, name] = payload


@dataclass(frozen=True, slots=True)
class Exposed:
    """One series as the page shows it."""

    family: Family
    values: tuple[str, ...]
    parts: Parts


class Recorder:
    """Owns the ledger, its durable state and the volatile gauges. Every method is thread-safe."""

    def __init__(
        self,
        store: Store,
        limits: Limits,
        *,
        hold_seconds: float = 30.0,
        expire_seconds: float = 86_400.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store, self._clock = store, clock
        self._lock = threading.RLock()
        self._hold = hold_seconds
        self._ledger = Ledger(limits, hold_seconds=hold_seconds, expire_seconds=expire_seconds)
        self._cursors = store.load(self._ledger)
        self._pending: dict[tuple[str, str], Payload] = {}
        self._shown: dict[Key, Parts] = {key: dict(one.parts) for key, one in self._ledger.series.items()}
        self._gauges: dict[Key, float] = {}
        self._origins: dict[str, dict[str, str]] = {}
        self._last_scrape = clock()
        self._room = Room(self._ledger, self._gauges)
        self._ledger.bounds.make_room = lambda label: self._make_room(label, self._room.for_label)
        self._ledger.make_room = lambda family: self._make_room(family, self._room.for_family)
        self._in_vain: dict[str, float] = {}
        self._forgotten: dict[Key, Parts] = {}
        self._writes = self._failures = 0
        self._last_write: float | None = None

    def cursors(self, kind: str) -> dict[str, bytes]:
        """Positions of one kind by name, applied ones included."""
        with self._lock:
            merged = {**self._cursors, **self._settled()}
        return {name: payload for (of, name), payload in merged.items() if of == kind and payload is not None}

    def apply(self, change: Change) -> None:
        """Moves a change's counters and positions together. It shows after the next commit.

        Raises:
            InvalidAmountError: where an amount is negative or not finite; nothing of the change has moved then.
        """
        for (family, _), parts in change.parts.items():
            self._ledger.check(family, parts)
        with self._lock:
            now = self._clock()
            for (family, labels), parts in change.parts.items():
                self._ledger.add(family, dict(labels), parts, now)
            self._pending.update(change.cursors)

    def commit(self) -> bool:
        """Writes everything applied in one transaction, then shows it.

        A disk that refuses is counted and tried again next time; the numbers show all the same, since the log lines
        and pages behind them can be read again.
        """
        with self._lock:
            dirt = self._ledger.dirt
            if not (dirt or self._pending):
                return True
            written = self._write()
            self._shown.update({key: dict(self._ledger.series[key].parts) for key in dirt.series})
            if written:
                self._ledger.dirt = Dirt()
            return written

    def set_gauge(self, family: Family, labels: Mapping[str, str], value: float) -> None:
        """Sets a level. It shows at once and is not durable."""
        with self._lock:
            values = self._ledger.bounds.bound(family.labels, labels, counted=False)
            self._gauges[Key(family.name, values)] = value

    def bounded(self, family: Family, labels: Mapping[str, str]) -> dict[str, str]:
        """Labels as series of a family have them that were counted before; values that have no place are `other`."""
        with self._lock:
            return dict(zip(family.labels, self._ledger.bounds.placed(family.labels, labels), strict=True))

    def replace_gauges(
        self, family: Family, scope: Mapping[str, str], rows: Iterable[tuple[Mapping[str, str], float]]
    ) -> None:
        """Sets the levels of a family within a scope and withdraws those that are no longer among them."""
        with self._lock:
            self.drop_gauges(family, **scope)
            for labels, value in rows:
                self.set_gauge(family, {**scope, **labels}, value)

    def drop_gauges(self, family: Family, **scope: str) -> None:
        """Withdraws the levels of a family whose labels match the scope."""
        wanted = [(family.labels.index(name), value) for name, value in scope.items()]
        with self._lock:
            gone = [
                key
                for key in self._gauges
                if key.family == family.name and all(key.values[place] == value for place, value in wanted)
            ]
            for key in gone:
                del self._gauges[key]

    def set_origins(self, source: str, origins: Mapping[str, str]) -> None:
        """Says what a source makes its families of, by family name: HELP tells it."""
        with self._lock:
            for known in self._origins.values():
                known.pop(source, None)
            for name, origin in origins.items():
                self._origins.setdefault(name, {})[source] = origin

    def origins(self) -> dict[str, list[str]]:
        """What families are made of, by name: each origin once, whichever sources have it."""
        with self._lock:
            return {name: sorted(set(by_source.values())) for name, by_source in self._origins.items()}

    def releases(self) -> list[tuple[tuple[str, ...], Release]]:
        """Releases in use: `(source, provider, model, template, template_revision)` and when they were."""
        with self._lock:
            return list(self._ledger.live_releases(self._clock(), self._last_scrape))

    def exposed(self) -> list[Exposed]:
        """Every series as the page shows it now, in the catalogue's order and sorted within a family."""
        with self._lock:
            now, ledger = self._clock(), self._ledger
            if self._last_scrape > now:  # the clock was set back: a scrape before that tells nothing any more
                self._last_scrape = 0.0
            rows = [
                (key, self._visible(key, parts, now))
                for key, parts in self._shown.items()
                if not ledger.is_withdrawn(key, now, self._last_scrape)
            ]
            rows += [(key, {"": value}) for key, value in self._gauges.items()]
            rows += self._health()
        rows.sort(key=lambda row: (_ORDER[row[0].family], row[0].values))
        return [Exposed(measures.FAMILIES[key.family], key.values, parts) for key, parts in rows]

    def totals(self, by: tuple[str, ...]) -> dict[tuple[str, ...], Amount]:
        """Committed counter totals by `(family name, *values of the labels in by)`, holds and expiry left aside.

        Only counters that carry every label in `by`; histograms are left out. What was forgotten counts on while the
        process lives, under its source and reason alone.
        """
        places = {
            name: tuple(family.labels.index(label) for label in by)
            for name, family in measures.FAMILIES.items()
            if family.kind == "counter" and set(by) <= set(family.labels)
        }
        found: dict[tuple[str, ...], Amount] = {}
        with self._lock:
            for key, parts in chain(self._shown.items(), self._forgotten.items()):
                if key.family in places:
                    name = (key.family, *[key.values[place] for place in places[key.family]])
                    found[name] = found.get(name, 0) + parts.get("", 0)
        return found

    def now(self) -> float:
        """The time by the clock that holds and expiry go by."""
        return self._clock()

    def note_scrape(self, began: float) -> None:
        """A page of this time was answered: a series is withdrawn, or leaves its base, only after it was on one."""
        with self._lock:
            self._last_scrape = max(self._last_scrape, began)

    def close(self) -> None:
        """Commits what is left and closes the state file."""
        with self._lock:
            self.commit()
            self._store.close()

    def _make_room(self, what: str, look: Callable[[str, float, float], Iterable[Key] | None]) -> bool:
        """Forgets what is withdrawn where a label's places or a family's series are all taken; whether that helped."""
        now = self._clock()
        if 0 <= now - self._in_vain.get(what, -_AGAIN_SECONDS) < _AGAIN_SECONDS:
            return False
        gone = look(what, now, self._last_scrape)
        if gone is None:
            self._in_vain[what] = now
            return False
        for key in gone:
            parts, labels = self._shown.pop(key, {}), measures.FAMILIES[key.family].labels
            kept = [value if name in _TOLD_APART else "" for name, value in zip(labels, key.values, strict=True)]
            total = self._forgotten.setdefault(Key(key.family, tuple(kept)), {"": 0})
            total[""] += parts.get("", 0)
        return True

    def _settled(self) -> Mapping[tuple[str, str], bytes | None]:
        """Pending positions, with those made that are made late."""
        made = {key: payload() for key, payload in self._pending.items() if callable(payload)}
        self._pending.update(made)
        return {key: payload for key, payload in self._pending.items() if not callable(payload)}

    def _write(self) -> bool:
        try:
            self._store.write(self._ledger, self._settled())
        except sqlite3.Error as error:
            self._failures += 1
            if self._failures == 1:
                _log.error("state cannot be written (%s); trying again with every commit", error)
            return False
        self._cursors = {k: p for k, p in {**self._cursors, **self._settled()}.items() if p is not None}
        self._pending = {}
        self._writes += 1
        self._last_write = self._clock()
        return True

    def _visible(self, key: Key, parts: Parts, now: float) -> Parts:
        """The base until the hold is over and a scrape has seen it: a long scrape interval must not skip the base.

        A hold that is over is forgotten, and stored so: a clock that is set back must not take back what was shown.
        """
        one = self._ledger.series[key]
        if not one.hold_until:
            return parts
        one.hold_until = min(one.hold_until, now + self._hold)  # the clock may have been set back while it held
        seen = not self._hold or self._last_scrape >= one.hold_until - self._hold
        if not seen or now < one.hold_until:
            return {part: one.base.get(part, 0) for part in parts}
        one.hold_until = 0.0
        self._ledger.dirt.series.add(key)
        return parts

    def _health(self) -> list[tuple[Key, Parts]]:
        ledger, catalogue = self._ledger, measures.EXPORTER
        rows: list[tuple[Key, Parts]] = [
            (Key(catalogue["series"].name, ()), {"": len(ledger.series)}),
            (Key(catalogue["state_writes"].name, ()), {"": self._writes}),
            (Key(catalogue["state_write_failures"].name, ()), {"": self._failures}),
            (Key(catalogue["state_set_aside"].name, ()), {"": self._store.set_aside}),
        ]
        if self._last_write is not None:
            rows.append((Key(catalogue["state_last_write_timestamp_seconds"].name, ()), {"": self._last_write}))
        overflow = catalogue["label_overflow"].name, catalogue["series_overflow"].name
        rows += [(Key(overflow[0], (label,)), {"": count}) for label, count in ledger.bounds.overflow.items()]
        rows += [(Key(overflow[1], (family,)), {"": count}) for family, count in ledger.series_overflow.items()]
        return rows


def bound_text(bound: float) -> str:
    """A histogram bound as `le` text, the way prometheus-client writes it (`0.5`, `1.0`, `+Inf`)."""
    return "+Inf" if bound == float("inf") else repr(float(bound))


_ORDER = {name: place for place, name in enumerate(measures.FAMILIES)}
