"""What an engine counted, as a change of the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.measures import ENGINE
from prefix_cache_exporter.measures.engine import ATTRIBUTED
from prefix_cache_exporter.recorder import Change, bound_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .deltas import Delta, Increase

_MISMATCHES = ("missing", "unexpected", "type", "help")
"""First words of what `verify` says; the rest of it names a family and belongs into the log."""


class Ledgering:
    """Makes changes of one source's deltas.

    Args:
        source: its name.
        provider: value of the provider label.
        models: canonical names by names on the page.
    """

    def __init__(self, source: str, provider: str, models: Mapping[str, str]) -> None:
        self._scope = {"source": source}
        self._provider, self._models = provider, models
        self._known: set[tuple[object, ...]] = set()

    def begin(self) -> Change:
        """The counters that are truly 0 before anything has been seen."""
        change = Change()
        for family in ("polls", "restarts"):
            change.add(ENGINE[family], self._scope, 0)
        return change

    def count_poll(self, change: Change) -> None:
        """One more poll."""
        change.add(ENGINE["polls"], self._scope, 1)

    def count_failure(self, change: Change, reason: str) -> None:
        """A poll that gave no page."""
        change.add(ENGINE["poll_errors"], {**self._scope, "reason": reason}, 1)

    def count_mismatches(self, change: Change, reasons: tuple[str, ...]) -> None:
        """A page that contradicted its map: once per kind of contradiction."""
        for kind in dict.fromkeys(map(mismatch_kind, reasons)):
            change.add(ENGINE["map_mismatches"], {**self._scope, "reason": kind}, 1)

    def credit(self, change: Change, delta: Delta, release: Mapping[str, str]) -> None:
        """Adds a delta's increases to a release.

        Args:
            change: takes them.
            delta: what was counted.
            release: `template` and `template_revision`.
        """
        for reason, amount in delta.anomalies.items():
            change.add(ENGINE["anomalies"], {**self._scope, "reason": reason}, amount)
        if delta.restarts:
            change.add(ENGINE["restarts"], self._scope, delta.restarts)
        under = tuple(release.values())
        for increase in delta.ledger():
            # A series that stands still is shown once and then left alone: nothing has to be written for it.
            slot = (*under, *increase[:-1])
            if increase.amount or slot not in self._known:
                self._known.add(slot)
                self._add(change, increase, release)

    def _add(self, change: Change, increase: Increase, release: Mapping[str, str]) -> None:
        family = ENGINE[increase.measure]
        labels = {
            **self._scope,
            "provider": self._provider,
            "model": self._models.get(increase.model, increase.model),
            **release,
            "engine": increase.engine,
        }
        for name in family.labels[len(ATTRIBUTED) :]:
            labels[name] = increase.by
        part = increase.part if increase.part in {"", "sum"} else bound_text(float(increase.part))
        change.add(family, labels, increase.amount, part)


def mismatch_kind(reason: str) -> str:
    """The kind of a contradiction, as a label may say it."""
    word = reason.partition(" ")[0]
    return word if word in _MISMATCHES else reason
