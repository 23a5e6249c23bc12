"""From which values a group of counters counts: restarts recognised once for all series that live together.

The process start time and the counters' own start times decide where the page has them. Without them a fall is all
there is, and a fall may also be the answer of another process behind the same address. Which of both it was shows in
what follows: a restarted engine goes on from the low values, another process gives way to the high ones again. Until
then nothing is counted, and nothing is lost either.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .reading import Series

SAME_MOMENT = 1.0
"""Seconds by which two statements of one start may differ: some are in whole seconds."""
_CALM = 3
"""Readings without a fall after which a source that alternated is believed again."""

Values = dict["Series", float]


@dataclass(frozen=True, slots=True)
class GroupState:
    """What is remembered of a group from reading to reading.

    Attributes:
        values: its counters as last seen.
        created: start times of its counters.
        started: start time of its process.
        doubt: `fell` after an unexplained fall, `rose` after it came back above the values before the fall, `unstable`
            while it alternates, `renamed` after it went and another came that it may have become.
        before: the values before the fall, while in doubt.
        calm: readings without a fall, while unstable.
    """

    values: Values
    created: Values
    started: float | None = None
    doubt: Literal["", "fell", "rose", "unstable", "renamed"] = ""
    before: Values | None = None
    calm: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """How a group came from one reading to the next.

    Attributes:
        state: to remember.
        since: the values that increases are counted from (those that are missing count from 0), or None if nothing is
            counted now.
        restarted: whether a restart was recognised.
        unstable: whether the source alternates.
        fallen: series that fell although the engine did not restart.
    """

    state: GroupState
    since: Mapping[Series, float] | None
    restarted: bool = False
    unstable: bool = False
    fallen: frozenset[Series] = frozenset()


def step(last: GroupState, now: GroupState, *, fall_restarts: bool) -> Step:
    """Takes a group from its last reading to the present one.

    Args:
        last: what is remembered.
        now: the present reading; only values and start times count.
        fall_restarts: whether an unexplained fall is a restart at once.
    """
    moved = _start_moved(last, now)
    if moved == "later":
        return Step(now, {}, restarted=True)
    if moved == "earlier":  # a process does not become older: two of them answer in turn
        return Step(replace(now, doubt="unstable"), None, unstable=True)
    if last.doubt == "renamed":  # what it counted meanwhile may have been counted under the other name
        return Step(now, None)
    fallen = frozenset(series for series, value in now.values.items() if value < last.values.get(series, value))
    if moved == "same" and not last.doubt:
        return Step(now, last.values, fallen=fallen)
    return _by_values(last, now, fell=bool(fallen), fall_restarts=fall_restarts)


def _by_values(last: GroupState, now: GroupState, *, fell: bool, fall_restarts: bool) -> Step:
    if last.doubt == "unstable":
        return _calm_down(last, now, fell=fell)
    if fell and last.doubt:
        return Step(replace(now, doubt="unstable"), None, unstable=True)
    if fell and not fall_restarts:
        return Step(replace(now, doubt="fell", before=last.values), None)
    if fell:
        return Step(now, {}, restarted=True)
    return _resolve(last, now) if last.doubt else Step(now, last.values)


def _calm_down(last: GroupState, now: GroupState, *, fell: bool) -> Step:
    calm = 0 if fell else last.calm + 1
    if calm < _CALM:
        return Step(replace(now, doubt="unstable", calm=calm), None, unstable=True)
    return Step(now, None)


def _resolve(last: GroupState, now: GroupState) -> Step:
    """What an unexplained fall was, now that the group rises from it."""
    before = last.before or {}
    back = all(value >= before.get(series, value) for series, value in now.values.items())
    if back and last.doubt == "fell":
        return Step(replace(now, doubt="rose", before=before), None)
    return Step(now, {}, restarted=True)


def _start_moved(last: GroupState, now: GroupState) -> Literal["later", "earlier", "same", "unknown"]:
    moves = [now.created[series] - moment for series, moment in last.created.items() if series in now.created]
    if last.started is not None and now.started is not None:
        moves.append(now.started - last.started)
    if not moves:
        return "unknown"
    if max(moves) > SAME_MOMENT:
        return "later"
    return "earlier" if min(moves) < -SAME_MOMENT else "same"
