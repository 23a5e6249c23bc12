"""Bounds on label values: what exceeds a bound goes to `other`, sums stay exact, and the overflow is counted.

A bound is on what is in use: where it is reached, values of revisions that nobody uses any more give their places away.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

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
    """Remembers which values have a place. A value that was known stays known, whatever comes in which order.

    Attributes:
        limits: the bounds.
        overflow: increments that went to `other`, by label.
        make_room: asked where all places of a label are taken; frees some and says whether it did.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.overflow: Counter[str] = Counter()
        self.make_room: Callable[[str], bool] = lambda _: False
        self._known: dict[str, set[str]] = {}

    def known(self, name: str) -> frozenset[str]:
        """The values of a label that have a place."""
        return frozenset(self._known.get(name, ()))

    def forget(self, name: str, values: Iterable[str]) -> None:
        """Takes values of a label their place."""
        self._known.get(name, set()).difference_update(values)

    def learn(self, names: Iterable[str], values: Iterable[str]) -> None:
        """Gives values of an earlier run their place back, even above a bound that has been lowered since."""
        for name, value in zip(names, values, strict=True):
            if value not in RESERVED:
                self._known.setdefault(name, set()).add(value)

    def bound(self, names: tuple[str, ...], labels: Mapping[str, str], *, counted: bool = True) -> tuple[str, ...]:
        """Label values in wire order; those without a place become `other`.

        Args:
            names: the labels.
            labels: their values.
            counted: whether it is for an increment: a level that is set again and again overflows nothing anew.
        """
        return tuple([self._one(name, labels.get(name, ""), counted) for name in names])

    def placed(self, names: tuple[str, ...], labels: Mapping[str, str]) -> tuple[str, ...]:
        """The same of values that may have a place already; none is given one."""
        return tuple([self._placed(name, labels.get(name, "")) for name in names])

    def _placed(self, name: str, value: str) -> str:
        return value if value in RESERVED or value in self._known.get(name, ()) else OTHER

    def _one(self, name: str, value: str, counted: bool) -> str:
        if value in RESERVED:
            return value
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = set()
        if value in known:
            return value
        if self._fits(value) and (len(known) < self.limits.of(name) or self.make_room(name)):
            known.add(value)
            return value
        if counted:
            self.overflow[name] += 1
        return OTHER

    def _fits(self, value: str) -> bool:
        # A lone surrogate (a broken \ud83d in somebody's JSON) cannot be written to the page at all.
        return len(value) <= self.limits.label_length and not any("\ud800" <= char <= "\udfff" for char in value)
