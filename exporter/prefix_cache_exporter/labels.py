"""Bounds on label values: what exceeds a bound goes to `other`, sums stay exact, and the overflow is counted."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

OTHER = "other"
"""Where values beyond a bound go."""
MIXED = "mixed"
"""The revision of increases that straddle a change of release."""
RESERVED = frozenset({"", OTHER, MIXED})
"""Values that never take a place."""

DEFAULT_LIMITS = {
    "model": 50,
    "template": 50,
    "template_revision": 100,
    "namespace": 100,
    "task": 50,
    "engine": 256,
}
_DEFAULT = 200


class Limits(msgspec.Struct, frozen=True):
    """How many different values each label may have.

    Attributes:
        labels: bound by label name; a name that is not here has 200.
        label_length: longest value in characters; a longer one goes to `other`.
        series: most series of one family.
    """

    labels: Mapping[str, int] = msgspec.field(default_factory=lambda: DEFAULT_LIMITS)
    label_length: int = 200
    series: int = 10_000

    def of(self, label: str) -> int:
        """The bound of one label."""
        return self.labels.get(label, _DEFAULT)


class Bounds:
    """Remembers which values have a place. A value that was known stays known, whatever comes in which order."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.overflow: Counter[str] = Counter()
        self._known: dict[str, set[str]] = {}

    def learn(self, names: Iterable[str], values: Iterable[str]) -> None:
        """Gives values of an earlier run their place back, even above a bound that has been lowered since."""
        for name, value in zip(names, values, strict=True):
            if value not in RESERVED:
                self._known.setdefault(name, set()).add(value)

    def bound(self, names: tuple[str, ...], labels: Mapping[str, str]) -> tuple[str, ...]:
        """Label values in wire order; those without a place become `other`."""
        return tuple([self._one(name, labels.get(name, "")) for name in names])

    def _one(self, name: str, value: str) -> str:
        if value in RESERVED:
            return value
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = set()
        if value in known:
            return value
        if len(known) < self.limits.of(name) and self._fits(value):
            known.add(value)
            return value
        self.overflow[name] += 1
        return OTHER

    def _fits(self, value: str) -> bool:
        # A lone surrogate (a broken \ud83d in somebody's JSON) cannot be written to the page at all.
        return len(value) <= self.limits.label_length and not any("\ud800" <= char <= "\udfff" for char in value)
