"""What an engine counted, as a change of the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.measures import ENGINE
from prefix_cache_exporter.measures.engine import ATTRIBUTED
from prefix_cache_exporter.recorder import Change, bound_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prefix_cache_exporter.measures import Family
    from prefix_cache_exporter.recorder import Labels

    from .delta import Delta, Increase

_MISMATCHES = ("missing", "unexpected", "type", "help")
"""First words of what `verify` says; the rest of it names a family and belongs into the log."""

_REMEMBERED = 50_000
"""Series remembered before all are looked at anew: far more than an engine has, unless its labels never come back."""


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
        self._known: dict[tuple[object, ...], tuple[tuple[Family, Labels], str]] = {}

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
        if len(self._known) > _REMEMBERED:
            self._known.clear()
        for increase in delta.ledger():
            # A series that stands still is shown once and then left alone: nothing has to be written for it.
            slot = (*under, *increase[:-1])
            known = self._known.get(slot)
            if known is None:
                known = self._known[slot] = self._series(increase, release)
            elif not increase.amount:
                continue
            series, part = known
            change.add_to(series, increase.amount, part)

    def _series(self, increase: Increase, release: Mapping[str, str]) -> tuple[tuple[Family, Labels], str]:
        """Where an increase goes: series and part."""
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
        return (family, tuple(labels.items())), part


def mismatch_kind(reason: str) -> str:
    """The kind of a contradiction, as a label may say it."""
    word = reason.partition(" ")[0]
    return word if word in _MISMATCHES else reason
