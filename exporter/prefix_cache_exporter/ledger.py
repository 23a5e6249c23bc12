"""The ledger: every durable counter by family and label set.

Values only grow. A new label set stands at 0 for a short hold before its value shows, so that PromQL's `increase()`
sees the first requests of a new revision (prometheus/prometheus#1673). A revision that nobody has used for a while is
withdrawn but not forgotten: when it returns, its old total shows first and the new one after the hold. It is forgotten
only where something new needs its place.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from . import measures
from .labels import OTHER, Bounds, Limits

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping

    from .measures import Family

Amount = int | float
Parts = dict[str, Amount]
"""A counter is `{"": n}`; a histogram `{"0.5": n, …, "+Inf": n, "sum": s}` with cumulative buckets as on the wire."""

RELEASE_LABELS = ("source", "provider", "model", "template", "template_revision")
_UNBOUNDED = frozenset({"source", "provider"})  # set by configuration and maps, not by traffic
_TRAFFIC = frozenset({
    measures.ENGINE["prompt_tokens"].name,
    measures.ENGINE["excluded_prompt_tokens"].name,
    measures.USAGE["requests"].name,
})  # fmt: skip


class Key(NamedTuple):
    """One series: a family's name and its label values in wire order."""

    family: str
    values: tuple[str, ...]


@dataclass(slots=True)
class Series:
    """One series' value, and what is shown until the hold ends; 0 where it has."""

    parts: Parts
    base: Parts
    hold_until: float


@dataclass(slots=True)
class Release:
    """When a label set's release last moved a counter, and when its first traffic came (seconds since 1970)."""

    touched: float
    first_traffic: float | None = None


@dataclass(slots=True)
class Dirt:
    """What has changed since it was last written; what is gone may have come anew since."""

    series: set[Key] = field(default_factory=set)
    releases: set[tuple[str, ...]] = field(default_factory=set)
    gone: set[Key] = field(default_factory=set)
    gone_releases: set[tuple[str, ...]] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.series or self.releases or self.gone or self.gone_releases)


def _bounds(parts: Mapping[str, Amount]) -> set[str]:
    return {part for part in parts if part != "sum"}


def _over(bounds: set[str], parts: Mapping[str, Amount]) -> Parts:
    """A histogram over more bounds than it was counted in, as when an engine is upgraded to other buckets.

    How many observations lie below a bound that was not there is not known; as many as below the next lower one
    certainly do. So the buckets stay cumulative and nothing is invented.
    """
    found: Parts = {}
    below: Amount = 0
    for bound in sorted(bounds, key=float):
        below = found[bound] = parts.get(bound, below)
    found["sum"] = parts.get("sum", 0)
    return found


class InvalidAmountError(ValueError):
    """An amount that no counter can take. Raised before anything moves."""


class Ledger:
    """Counters by label set. Not thread-safe: the recorder is the one door.

    Attributes:
        bounds, series, releases: which label values have a place, all series, and when their releases were used.
        series_overflow: increments that went to `other` because a family was full, by family.
        dirt: what is to be written.
        make_room: asked where a family is full; forgets some of its series and says whether it did.
    """

    def __init__(self, limits: Limits, *, hold_seconds: float, expire_seconds: float) -> None:
        self.bounds = Bounds(limits)
        self.series: dict[Key, Series] = {}
        self.releases: dict[tuple[str, ...], Release] = {}
        self.series_overflow: dict[str, int] = {}
        self.dirt = Dirt()
        self.make_room: Callable[[str], bool] = lambda _: False
        self._hold = hold_seconds
        self._expire = expire_seconds
        self._sizes: dict[str, int] = {}
        self._positions: dict[str, tuple[int, ...] | None] = {}

    def restore(
        self, series: Iterable[tuple[Key, Series]], releases: Iterable[tuple[tuple[str, ...], Release]]
    ) -> None:
        """Takes over what an earlier run wrote; families that the catalogue no longer has are left out."""
        for key, one in series:
            family = measures.FAMILIES.get(key.family)
            if family is not None and len(family.labels) == len(key.values):
                self._insert(key, one)
                self.bounds.learn(family.labels, key.values)
        self.releases.update(releases)

    @staticmethod
    def check(family: Family, parts: Mapping[str, Amount]) -> None:
        """Refuses what no counter can take, before anything moves.

        Raises:
            InvalidAmountError: for an amount that is negative, NaN or infinite.
        """
        for part, amount in parts.items():
            if not (amount >= 0 and math.isfinite(amount)):
                where = f"{family.name} {part}".strip()
                raise InvalidAmountError(f"{where}: got {amount}, expected a finite amount of at least 0")

    def add(self, family: Family, labels: Mapping[str, str], parts: Mapping[str, Amount], now: float) -> None:
        """Adds checked amounts to one series; 0 makes the series without moving it."""
        key, one = self._find(family, self.bounds.bound(family.labels, labels), now)
        self._touch(family, key, parts, now)
        held = one.parts
        if family.kind == "histogram" and held.keys() != parts.keys():
            held, parts = (_over(_bounds(held) | _bounds(parts), side) for side in (held, parts))
            one.parts = held
        for part, amount in parts.items():
            held[part] = held.get(part, 0) + amount
        self.dirt.series.add(key)

    def is_withdrawn(self, key: Key, now: float, last_scrape: float) -> bool:
        """Whether a series' revision has been unused for the expiry time, and its last change has been scraped."""
        release = self.releases.get(self.release_of(key) or ())
        return release is not None and self._expired(release, now, last_scrape)

    def release_of(self, key: Key) -> tuple[str, ...] | None:
        """The release part of a series' labels; None for families that belong to no release."""
        positions = self._release_positions(key.family)
        return None if positions is None else tuple([key.values[position] for position in positions])

    def live_releases(self, now: float, last_scrape: float) -> Iterator[tuple[tuple[str, ...], Release]]:
        """Releases that are not withdrawn, by `source, provider, model, template, template_revision`."""
        return ((key, one) for key, one in self.releases.items() if not self._expired(one, now, last_scrape))

    def withdrawn_releases(self, now: float, last_scrape: float) -> dict[tuple[str, ...], Release]:
        """The others, the longest unused first."""
        found = [(key, one) for key, one in self.releases.items() if self._expired(one, now, last_scrape)]
        return dict(sorted(found, key=lambda pair: pair[1].touched))

    def forget(self, releases: Container[tuple[str, ...]]) -> list[Key]:
        """Drops releases with all their series, and gives these."""
        keys = [key for key in self.series if self.release_of(key) in releases]
        for key in keys:
            del self.series[key]
            self._sizes[key.family] -= 1
        names = [name for name in self.releases if name in releases]
        for name in names:
            del self.releases[name]
        self.dirt.series.difference_update(keys)
        self.dirt.releases.difference_update(names)
        self.dirt.gone.update(keys)
        self.dirt.gone_releases.update(names)
        return keys

    def _expired(self, release: Release, now: float, last_scrape: float) -> bool:
        return now - release.touched >= self._expire and last_scrape > release.touched + self._hold

    def _find(self, family: Family, values: tuple[str, ...], now: float) -> tuple[Key, Series]:
        key = Key(family.name, values)
        one = self.series.get(key)
        full = one is None and self._sizes.get(family.name, 0) >= self.bounds.limits.series
        if full and not self.make_room(family.name):
            self.series_overflow[family.name] = self.series_overflow.get(family.name, 0) + 1
            pairs = zip(family.labels, values, strict=True)
            key = Key(
                family.name, tuple([value if name in _UNBOUNDED or not value else OTHER for name, value in pairs])
            )
            one = self.series.get(key)
        if one is None:
            one = Series({}, {}, now + self._hold)
            self._insert(key, one)
        return key, one

    def _insert(self, key: Key, one: Series) -> None:
        if key not in self.series:
            self._sizes[key.family] = self._sizes.get(key.family, 0) + 1
        self.series[key] = one

    def _touch(self, family: Family, key: Key, parts: Mapping[str, Amount], now: float) -> None:
        name = self.release_of(key)
        if name is None:
            return
        release = self.releases.get(name)
        moves = any(parts.values())
        if release is None:
            release = self.releases[name] = Release(now)
        elif not moves:
            return
        elif now - release.touched >= self._expire:
            self._return(name, now)
        release.touched = now
        if release.first_traffic is None and moves and family.name in _TRAFFIC:
            release.first_traffic = now
        self.dirt.releases.add(name)

    def _return(self, name: tuple[str, ...], now: float) -> None:
        """A withdrawn revision returns: each of its series shows its old total once more before it moves."""
        for key, one in self.series.items():
            if self.release_of(key) == name:
                one.base, one.hold_until = dict(one.parts), now + self._hold
                self.dirt.series.add(key)

    def _release_positions(self, family: str) -> tuple[int, ...] | None:
        try:
            return self._positions[family]
        except KeyError:
            labels = measures.FAMILIES[family].labels
            complete = all(name in labels for name in RELEASE_LABELS)
            positions = tuple(labels.index(name) for name in RELEASE_LABELS) if complete else None
            self._positions[family] = positions
            return positions
