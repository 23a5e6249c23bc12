"""Making room in the ledger: revisions that are withdrawn give their places to what is new, the longest unused first.

A bound is there against too many values at once. Without this the hundredth revision of a service that lives for years
would be the last that has a name.
"""

from __future__ import annotations

import math
from itertools import chain
from typing import TYPE_CHECKING

from . import measures

if TYPE_CHECKING:
    from collections.abc import Collection

    from .ledger import Key, Ledger

_SHARE = 10
"""A tenth of the places is freed at once: to look for them costs the same for one as for many."""


class Room:
    """Frees places of a label, or series of a family.

    Args:
        ledger: what is held.
        gauges: levels on the page, which hold their label values, too.
    """

    def __init__(self, ledger: Ledger, gauges: Collection[Key]) -> None:
        self._ledger, self._gauges = ledger, gauges

    def for_label(self, label: str, now: float, last_scrape: float) -> list[Key] | None:
        """Frees places of a label; gives the series that were forgotten for it, None where all values are in use.

        Args:
            label: its name.
            now: seconds since 1970.
            last_scrape: when a page was last answered: what changed since is not withdrawn.
        """
        bounds, withdrawn = self._ledger.bounds, self._ledger.withdrawn_releases(now, last_scrape)
        used = dict.fromkeys(bounds.known(label), -math.inf)
        holders: dict[str, set[tuple[str, ...]]] = {}
        for key in chain(self._ledger.series, self._gauges):
            labels = measures.FAMILIES[key.family].labels
            value = key.values[labels.index(label)] if label in labels else ""
            if value not in used:
                continue
            name = self._ledger.release_of(key) or ()
            if name in withdrawn:
                used[value] = max(used[value], withdrawn[name].touched)
                holders.setdefault(value, set()).add(name)
            else:
                used[value] = math.inf
        places = bounds.limits.of(label)
        idle = sorted((when, value) for value, when in used.items() if when < math.inf)
        freed = [value for _, value in idle[: len(used) - places + max(1, places // _SHARE)]]
        if len(used) - len(freed) >= places:
            return None
        bounds.forget(label, freed)
        return self._ledger.forget(set().union(*(holders.get(value, ()) for value in freed)))

    def for_family(self, family: str, now: float, last_scrape: float) -> list[Key] | None:
        """Frees series of a family; gives those that were forgotten, None where all are in use. Arguments as above."""
        sizes = dict.fromkeys(self._ledger.withdrawn_releases(now, last_scrape), 0)
        for key in self._ledger.series:
            name = self._ledger.release_of(key) if key.family == family else None
            if name in sizes:
                sizes[name] += 1
        wanted = max(1, self._ledger.bounds.limits.series // _SHARE)
        doomed = set()
        for name, size in sizes.items():
            if size and wanted > 0:
                doomed.add(name)
                wanted -= size
        return self._ledger.forget(doomed) if doomed else None
