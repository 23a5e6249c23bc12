"""Percentiles of a stream of durations in bounded memory, and when a sample is too small to have them."""

from __future__ import annotations

import math
from array import array
from typing import NamedTuple

QUANTILES = (0.5, 0.95, 0.99)
"""The percentiles that are printed."""
BEYOND = 10
"""Fewer observations beyond a percentile than this do not support it: a P99 needs 1,000 requests."""
EXACT = 4096
"""As many observations are kept as they are; more are counted in classes."""
ERROR = 0.005
"""How far, relative to the truth, a percentile of more observations can be off."""

_BASE = (1 + ERROR) / (1 - ERROR)
_LOG = math.log(_BASE)
_SMALLEST = 1e-6
"""A microsecond; shorter durations count as this."""


class Percentile(NamedTuple):
    """One percentile.

    Attributes:
        value: in seconds; the smallest observation that so many are not above. None without observations.
        beyond: observations above its rank.
        supported: whether the sample is large enough to say it.
    """

    quantile: float
    value: float | None
    beyond: int
    supported: bool


class Durations:
    """Durations in seconds; memory is bounded by 4,096 values or some 2,500 classes."""

    __slots__ = ("_classes", "_few", "count")

    def __init__(self) -> None:
        self.count = 0
        self._few: array[float] | None = array("d")
        self._classes: dict[int, int] = {}

    def add(self, seconds: float) -> None:
        """Takes in one duration; a class holds those within half a per cent of its middle."""
        self.count += 1
        if self._few is not None:
            self._few.append(seconds)
            if len(self._few) > EXACT:
                for value in self._few:
                    self._classify(value)
                self._few = None
            return
        self._classify(seconds)

    def extend(self, values: list[float]) -> None:
        """Takes in many durations."""
        if self._few is not None and len(self._few) + len(values) <= EXACT:
            self._few.extend(values)
            self.count += len(values)
            return
        for seconds in values:
            self.add(seconds)

    def merge(self, other: Durations) -> None:
        """Adds another stream's durations."""
        if other._few is not None:
            self.extend(other._few.tolist())
            return
        few, self._few = self._few, None
        for value in few or ():
            self._classify(value)
        for place, count in other._classes.items():
            self._classes[place] = self._classes.get(place, 0) + count
        self.count += other.count

    def percentile(self, quantile: float) -> Percentile:
        """One percentile by the nearest-rank rule."""
        rank = max(math.ceil(quantile * self.count), 1)
        beyond = max(self.count - rank, 0)
        if not self.count:
            return Percentile(quantile, None, 0, supported=False)
        value = sorted(self._few)[rank - 1] if self._few is not None else self._of_class(rank)
        return Percentile(quantile, value, beyond, beyond >= BEYOND)

    def _classify(self, seconds: float) -> None:
        place = math.ceil(math.log(max(seconds, _SMALLEST)) / _LOG)
        self._classes[place] = self._classes.get(place, 0) + 1

    def _of_class(self, rank: int) -> float:
        passed = 0
        for place in sorted(self._classes):
            passed += self._classes[place]
            if passed >= rank:
                break
        return 2 * _BASE**place / (_BASE + 1)
