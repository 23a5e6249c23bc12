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


class TokenSums:
    """What the records of one label set add up to, by family; None where nothing said a number."""

    __slots__ = (
        "cached_prompt_tokens",
        "eligible_cached_tokens",
        "eligible_requests",
        "eligible_tokens",
        "hit_requests",
        "output_tokens",
        "prompt_tokens",
        "reported_requests",
        "requests",
        "uncached_prompt_tokens",
        "unreported_prompt_tokens",
        "unreported_requests",
    )

    def __init__(self) -> None:
        for name in self.__slots__:
            setattr(self, name, None)

    def add_requests(self, requests: int, output: int | None) -> None:
        """Adds requests, and their output where it is known."""
        self._add("requests", requests)
        if output is not None:
            self._add("output_tokens", output)

    def add_reported(self, requests: int, *, hits: int, prompt: int, cached: int, uncached: int) -> None:
        """Adds the input of requests whose cached tokens are known."""
        self._add("reported_requests", requests)
        self._add("unreported_requests", 0)
        self._add("hit_requests", hits)
        self._add("prompt_tokens", prompt)
        self._add("cached_prompt_tokens", cached)
        self._add("uncached_prompt_tokens", uncached)

    def add_unreported(self, requests: int, prompt: int | None) -> None:
        """Adds requests whose cached tokens or total are not known.

        Both sides of a ratio or neither: cached tokens without a total belong to no ratio.
        """
        self._add("reported_requests", 0)
        self._add("unreported_requests", requests)
        if prompt is not None:
            self._add("unreported_prompt_tokens", prompt)

    def add_eligible(self, requests: int, tokens: int, cached: int) -> None:
        """Adds the eligible prefixes of requests where they are known, and what of them was cached."""
        self._add("eligible_requests", requests)
        self._add("eligible_tokens", tokens)
        self._add("eligible_cached_tokens", cached)

    def _add(self, name: str, amount: int) -> None:
        setattr(self, name, (getattr(self, name) or 0) + amount)


_FAMILIES = tuple((name, USAGE[name]) for name in TokenSums.__slots__)


class Tally:
    """Sums of one batch of one source."""

    def __init__(self, source: str) -> None:
        self._source = source
        self.rows: dict[Labels, TokenSums] = {}
        self.more: dict[tuple[str, Labels, tuple[str, ...]], int] = {}
        self.seconds: dict[tuple[str, Labels, str, str], list[float]] = {}
        self.events: dict[tuple[str, str], int] = {}
        self.fingerprints: dict[tuple[tuple[str, ...], int], int] = {}

    def row(self, labels: Labels) -> TokenSums:
        """The sums of one label set."""
        found = self.rows.get(labels)
        if found is None:
            found = self.rows[labels] = TokenSums()
        return found

    def add(self, family: str, labels: Labels, amount: int, *values: str) -> None:
        """Adds to a family that has labels of its own, given in the catalogue's order."""
        key = (family, labels, values)
        self.more[key] = self.more.get(key, 0) + amount

    def event(self, family: str, value: str = "", amount: int = 1) -> None:
        """Adds to a counter of the source; `value` is its second label."""
        key = (family, value)
        self.events[key] = self.events.get(key, 0) + amount

    def fingerprint(self, labels: Labels, value: int, requests: int) -> None:
        """Adds requests that share a leading fingerprint; `value` is its hash."""
        key = (labels[:4], value)
        self.fingerprints[key] = self.fingerprints.get(key, 0) + requests

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
        label_sets = {*self.rows, *(labels for _, labels, _ in self.more)}
        named = {labels: tuple(self._pairs(labels).items()) for labels in label_sets}  # one for all of its families
        for labels, sums in self.rows.items():
            for name, family in _FAMILIES:
                amount = getattr(sums, name)
                if amount is not None:
                    change.add_to((family, named[labels]), amount)
        for (name, labels, values), amount in self.more.items():
            family = USAGE[name]
            own = family.labels[len(family.labels) - len(values) :]
            change.add_to((family, (*named[labels], *zip(own, values, strict=True))), amount)
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
