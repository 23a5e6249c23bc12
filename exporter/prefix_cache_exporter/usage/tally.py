"""Sums of one batch of usage records by family and labels, before they go to the recorder."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from prefix_cache_exporter.measures import USAGE
from prefix_cache_exporter.recorder import bound_text

if TYPE_CHECKING:
    from prefix_cache_exporter.measures import Family
    from prefix_cache_exporter.recorder import Change

TTFT_BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
DURATION_BOUNDS = (0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
"""Histogram bounds in seconds."""
_BOUNDS = {"time_to_first_token_seconds": TTFT_BOUNDS, "duration_seconds": DURATION_BOUNDS}


class Labels(NamedTuple):
    """Label values of one record, without those of a single family."""

    provider: str
    model: str
    template: str
    template_revision: str
    namespace: str
    task: str
    status: str
    attempt: str


_LABEL_NAMES = Labels._fields
_NUMBERS = (
    "requests",
    "reported_requests",
    "unreported_requests",
    "hit_requests",
    "prompt_tokens",
    "unreported_prompt_tokens",
    "cached_prompt_tokens",
    "uncached_prompt_tokens",
    "output_tokens",
    "eligible_tokens",
    "eligible_cached_tokens",
    "eligible_requests",
)
_FAMILIES = tuple(USAGE[name] for name in _NUMBERS)
(
    REQUESTS,
    REPORTED,
    UNREPORTED,
    HIT,
    PROMPT,
    UNREPORTED_PROMPT,
    CACHED,
    UNCACHED,
    OUTPUT,
    ELIGIBLE,
    ELIGIBLE_CACHED,
    ELIGIBLE_REQUESTS,
) = range(len(_NUMBERS))
Sums = list[int | None]
"""What a label set gained, in the order of the constants above; None where nothing said a number."""


class Tally:
    """Sums of one batch of one source."""

    def __init__(self, source: str) -> None:
        self._source = source
        self.rows: dict[Labels, Sums] = {}
        self.more: dict[tuple[str, Labels, tuple[str, ...]], int] = {}
        self.seconds: dict[tuple[str, Labels, str, str], list[float]] = {}
        self.events: dict[tuple[str, str], int] = {}

    def row(self, labels: Labels) -> Sums:
        """The sums of one label set."""
        found = self.rows.get(labels)
        if found is None:
            found = self.rows[labels] = [None] * len(_NUMBERS)
        return found

    def add(self, family: str, labels: Labels, amount: int, *values: str) -> None:
        """Adds to a family that has labels of its own, given in the catalogue's order."""
        key = (family, labels, values)
        self.more[key] = self.more.get(key, 0) + amount

    def event(self, family: str, value: str = "", amount: int = 1) -> None:
        """Adds to a counter of the source; `value` is its second label."""
        key = (family, value)
        self.events[key] = self.events.get(key, 0) + amount

    def observe(self, family: str, labels: Labels, band: str, state: str, seconds: float) -> None:
        """Adds one observation to a histogram."""
        bounds = _BOUNDS[family]
        key = (family, labels, band, state)
        found = self.seconds.get(key)
        if found is None:
            found = self.seconds[key] = [0.0] + [0] * (len(bounds) + 1)
        found[0] += seconds
        found[1 + bisect_left(bounds, seconds)] += 1

    def flush(self, change: Change) -> None:
        """Hands the sums over."""
        for labels, sums in self.rows.items():
            pairs = self._pairs(labels)
            for family, amount in zip(_FAMILIES, sums, strict=True):
                if amount is not None:
                    change.add(family, pairs, amount)
        for (name, labels, values), amount in self.more.items():
            family = USAGE[name]
            own = family.labels[len(family.labels) - len(values) :]
            change.add(family, {**self._pairs(labels), **dict(zip(own, values, strict=True))}, amount)
        for (name, labels, band, state), found in self.seconds.items():
            self._histogram(change, USAGE[name], labels, (band, state), found)
        for (name, value), amount in self.events.items():
            family = USAGE[name]
            change.add(family, dict(zip(family.labels, (self._source, value), strict=False)), amount)

    def _pairs(self, labels: Labels) -> dict[str, str]:
        return {"source": self._source, **dict(zip(_LABEL_NAMES, labels, strict=True))}

    def _histogram(
        self, change: Change, family: Family, labels: Labels, values: tuple[str, str], found: list[float]
    ) -> None:
        pairs = self._pairs(labels)
        own = {name: pairs[name] for name in family.labels[: -len(values)]}
        own.update(zip(family.labels[-len(values) :], values, strict=True))
        total, *counts = found
        for bound, count in zip((*_BOUNDS[family.id], float("inf")), accumulate(counts), strict=True):
            change.add(family, own, int(count), bound_text(bound))
        change.add(family, own, total, "sum")


def gain(sums: Sums, place: int, amount: int) -> None:
    """Adds to one number of a label set."""
    sums[place] = (sums[place] or 0) + amount
