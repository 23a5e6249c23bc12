"""Whether a caveat's condition holds, for an engine and an interval.

Sums are over the interval's increases. Where a needed number is not known the condition does not hold: a caveat says
that something was seen, not that it could not be ruled out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .records import Caveat


_LONGEST_RANK = 9
"""Digits of a rank; what is longer is a name of something else."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What conditions look at.

    Attributes:
        increases: by measure or piece of evidence, its increase over the interval in its own unit.
        explained: prompt tokens that requests in flight at the interval's end, or aborted ones, may have looked up.
        explained_before: the same at its start.
        in_flight: whether requests are in flight at its end.
        info: labels of the engine's info families.
        labels: labels seen that tell processes apart.
        ranks: ranks of all engines on the page.
    """

    increases: Mapping[str, float]
    explained: float
    explained_before: float
    in_flight: bool
    info: Mapping[str, str]
    labels: frozenset[str]
    ranks: Sequence[str]

    def total(self, names: Sequence[str]) -> float | None:
        """The sum of increases, or None where one is not known."""
        found = [self.increases.get(name) for name in names]
        return None if None in found else sum(value for value in found if value is not None)


def holds(caveat: Caveat, evidence: Evidence) -> bool:
    """Whether a caveat is active."""
    ((kind, needs),) = caveat.when.items()
    return CONDITIONS[kind](needs, evidence)


def _always(needs: bool, _: Evidence) -> bool:
    return needs


def _unseen(_: bool, __: Evidence) -> bool:
    return False


def _increased(measure: str, evidence: Evidence) -> bool:
    return evidence.increases.get(measure, 0) > 0


def _exceeds(needs: Mapping[str, Any], evidence: Evidence) -> bool:
    if any(evidence.info.get(name) == said for name, said in needs.get("unless", {}).items()):
        return False
    more, less = evidence.total(needs["sum"]), evidence.total(needs["over"])
    if more is None or less is None:
        return False
    explained = {
        None: 0.0,
        "requests_in_flight": evidence.explained,
        "requests_still_in_flight": evidence.explained if evidence.in_flight else 0.0,
        "requests_in_flight_before": evidence.explained_before,
    }[needs.get("explained_by")]
    return more > less + explained


def _share(needs: Mapping[str, Any], evidence: Evidence) -> bool:
    part, whole = evidence.total(needs["sum"]), evidence.total(needs["over"])
    return bool(part and whole) and (part or 0) >= needs["at_least"] * (whole or 0)


def _label(name: str, evidence: Evidence) -> bool:
    return name in evidence.labels


def _info_label(needs: Mapping[str, Any], evidence: Evidence) -> bool:
    plain = {"", *needs["beyond"]}
    return any(evidence.info.get(name, "") not in plain for name in needs["any_of"])


def _labels_disagree(needs: Mapping[str, Any], evidence: Evidence) -> bool:
    try:
        factors = [int(evidence.info[name]) for name in needs["product"]]
        whole = int(evidence.info[needs["multiple_of"]])
    except (KeyError, ValueError):
        return False
    product = 1
    for factor in factors:
        product *= factor
    return whole > 0 and product % whole != 0


def _ranks_missing(_: bool, evidence: Evidence) -> bool:
    # Ranks count from 0: where the highest is not the last of as many, some engines are not on the page.
    ranks = [int(rank) for rank in evidence.ranks if rank.isdecimal() and len(rank) <= _LONGEST_RANK]
    return bool(ranks) and max(ranks) >= len(set(ranks))


CONDITIONS: Mapping[str, Callable[[Any, Evidence], bool]] = {
    "always": _always,
    "unseen": _unseen,
    "increased": _increased,
    "exceeds": _exceeds,
    "share": _share,
    "label": _label,
    "info_label": _info_label,
    "labels_disagree": _labels_disagree,
    "ranks_missing": _ranks_missing,
}
"""Conditions by the word that maps use for them."""
