"""Whether a page's histograms hold together: buckets that only rise, and a count that is the last of them.

OpenMetrics demands both, and its parser refuses a page that breaks them; Prometheus text says nothing.
prometheus-client adds each bucket to the ones below it and makes `_count` of the last sum, also over the files of
several processes, and whatever is counted meanwhile:
https://github.com/prometheus/client_python/blob/v0.26.0/prometheus_client/multiprocess.py#L160. A histogram that breaks
them was mended on the way.
"""

from __future__ import annotations

from itertools import pairwise
from math import inf, isfinite
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Key = tuple[tuple[str, str], ...]

_PYTHONS = frozenset("_ \t\n")
"""What Python reads in a number, and nobody else."""


class Ladder(NamedTuple):
    """One histogram; values are named by their index.

    Attributes:
        key: its labels, sorted, without `le`.
        rising: pairs of which the first may not be more than the second.
        equal: pairs that must be the same.
    """

    key: Key
    rising: tuple[tuple[int, int], ...]
    equal: tuple[tuple[int, int], ...]

    def holds(self, values: Sequence[float]) -> bool:
        """Whether the histogram holds together; never with NaN in it."""
        return all(values[lower] <= values[upper] for lower, upper in self.rising) and all(
            values[one] == values[other] for one, other in self.equal
        )


def ladders_of(family: str, samples: Iterable[tuple[int, str, Key]]) -> list[Ladder]:
    """The histograms of a family, from its samples: index, name and sorted labels of each."""
    rungs: dict[Key, list[tuple[float, int]]] = {}
    counts: dict[Key, int] = {}
    for index, name, labels in samples:
        suffix = name[len(family) :]
        if suffix == "_count":
            counts[labels] = index
        elif suffix == "_bucket":
            edge = edge_of(dict(labels).get("le", ""))
            if edge is not None:
                key = tuple(pair for pair in labels if pair[0] != "le")
                rungs.setdefault(key, []).append((edge, index))
    return [_ladder(key, sorted(found), counts.get(key)) for key, found in rungs.items()]


def edge_of(text: str) -> float | None:
    """The upper edge that a bucket's `le` says: a number, or the one spelling of infinity that there is; else None."""
    if text == "+Inf":
        return inf
    try:
        edge = float(text)
    except ValueError:
        return None
    return edge if isfinite(edge) and not _PYTHONS.intersection(text) else None


def _ladder(key: Key, rungs: list[tuple[float, int]], count: int | None) -> Ladder:
    steps = list(pairwise(rungs))
    rising = tuple((below, above) for (low, below), (high, above) in steps if low < high)
    equal = [(below, above) for (low, below), (high, above) in steps if low == high]  # one edge, spelt in two ways
    last, index = rungs[-1]
    if count is not None and last == inf:
        equal.append((index, count))
    return Ladder(key, rising, tuple(equal))
