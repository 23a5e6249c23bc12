"""From which values a group of counters counts: restarts recognised once for all series that live together.

The process start time and the counters' own start times decide where the page has them. Without them a fall is all
there is, and a fall may also be the answer of another process behind the same address. Which of both it was shows in
what follows: a restarted engine goes on from the low values, another process gives way to the high ones again. Until
then nothing is counted, and nothing is lost either.

A fall that is no restart (the start times are the same, or everything still stands above half of what it was, where a
restart begins at 0) is an older page, out of a cache on the way: what was counted before counts on as soon as a page
is back there. Where that never comes, or falls come one after another, nothing tells what the source is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .reading import Series

SAME_MOMENT = 1.0
"""Seconds by which two statements of one start may differ: some are in whole seconds."""
_CALM = 3
"""Readings without a fall after which a source that alternated is believed again."""
_DEEP = 0.5
"""A restart begins at 0: where every counter stands above this share of what it was, it was none."""
_ROUNDING = 1e-9
"""Share by which a sum of seconds may fall: several processes' sums are added in any order, tokens are exact."""

Values = dict["Series", float]


class Start(NamedTuple):
    """When something started, as far as the page says.

    Attributes:
        process: the process.
        counters: its first counter.
    """

    process: float | None
    counters: float | None

    def is_later(self, other: Start) -> bool:
        """Whether it started after another, by anything that both say."""
        return any(
            one is not None and two is not None and one - two > SAME_MOMENT
            for one, two in zip(self, other, strict=True)
        )


@dataclass(frozen=True, slots=True)
class GroupState:
    """What is remembered of a group from reading to reading.

    Attributes:
        values: its counters as last seen.
        created: start times of its counters.
        started: start time of its process.
        doubt: `fell` after an unexplained fall, `rose` after it came back above the values before the fall, `older`
            after a fall that is no restart, `back` for some readings after that, `unstable` while it alternates,
            `renamed` after it went and another came that it may have become.
        before: the values before the fall, while in doubt.
        calm: readings without a fall, while in doubt.
        youngest: when the youngest process behind this name started, where an older one answered after it.
    """

    values: Values
    created: Values
    started: float | None = None
    doubt: Literal["", "fell", "rose", "older", "back", "unstable", "renamed"] = ""
    before: Values | None = None
    calm: int = 0
    youngest: Start | None = None

    @property
    def start(self) -> Start:
        """When its process and its first counter started."""
        return Start(self.started, min(self.created.values(), default=None))


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


def step(last: GroupState, now: GroupState, *, fall_restarts: bool, final: bool = False) -> Step:
    """Takes a group from its last reading to the present one.

    Args:
        last: what is remembered.
        now: the present reading; only values and start times count.
        fall_restarts: whether an unexplained fall is a restart at once.
        final: whether no reading follows that could tell what a fall was.
    """
    last = _without_remade(last, now)
    moved = _start_moved(last, now)
    if moved in ("later", "earlier"):
        return _take_turns(last, now, later=moved == "later")
    now, fallen = _fallen(last, replace(now, youngest=last.youngest))
    if last.doubt == "renamed":  # what it counted meanwhile may have been counted under the other name
        return Step(now, None)
    certain = moved == "same" and _are_same_counters(last, now)
    if last.doubt == "older":
        return _wait(last, now, fallen, alive=moved == "same", certain=certain)
    if last.doubt == "back":
        return _watch(last, now, fallen, certain=certain)
    if moved == "same" and not last.doubt:
        return _slip(last, now, fallen) if fallen and not final else Step(now, last.values, fallen=fallen)
    return _by_values(last, now, fallen, fall_restarts=fall_restarts)


def _without_remade(last: GroupState, now: GroupState) -> GroupState:
    """The last reading with counters at 0 that were made anew while others stayed: they restart alone."""
    moves = {series: now.created[series] - moment for series, moment in last.created.items() if series in now.created}
    remade = {series for series, move in moves.items() if move > SAME_MOMENT}
    if not remade or len(remade) == len(moves) or min(moves.values()) < -SAME_MOMENT:
        return last

    def from_zero(values: Values) -> Values:
        return {series: 0.0 if series._replace(part="") in remade else value for series, value in values.items()}

    return replace(
        last,
        values=from_zero(last.values),
        created={**last.created, **{series: now.created[series] for series in remade}},
        before=None if last.before is None else from_zero(last.before),
    )


def _take_turns(last: GroupState, now: GroupState, *, later: bool) -> Step:
    """Another process: a new one, or one of two that answer in turn, since a process does not become older."""
    if later and (last.youngest is None or now.start.is_later(last.youngest)):
        return Step(now, {}, restarted=True)
    return Step(replace(now, doubt="unstable", youngest=last.youngest or last.start), None, unstable=True)


def _fallen(last: GroupState, now: GroupState) -> tuple[GroupState, frozenset[Series]]:
    """What is lower than it was; a sum that is so by its rounding alone stays what it was."""
    fallen = {series for series, value in now.values.items() if value < last.values.get(series, value)}
    rounded = {
        series: last.values[series]
        for series in fallen
        if series.part == "sum" and last.values[series] <= now.values[series] * (1 + _ROUNDING)
    }
    if not rounded:
        return now, frozenset(fallen)
    return replace(now, values={**now.values, **rounded}), frozenset(fallen - rounded.keys())


def _by_values(last: GroupState, now: GroupState, fallen: frozenset[Series], *, fall_restarts: bool) -> Step:
    if last.doubt == "unstable":
        return _calm_down(last, now, fell=bool(fallen))
    if fallen and last.doubt:
        return Step(replace(now, doubt="unstable"), None, unstable=True)
    if fallen and fall_restarts:
        return Step(now, {}, restarted=True)
    if fallen and _is_deep(last.values, now.values):
        return Step(replace(now, doubt="fell", before=last.values), None)
    if fallen:
        return _slip(last, now, fallen)
    return _resolve(last, now) if last.doubt else Step(now, last.values)


def _slip(last: GroupState, now: GroupState, fallen: frozenset[Series]) -> Step:
    """A fall that is no restart: an older page, or, where something else rose, some odd counters."""
    if any(value > last.values.get(series, value) for series, value in now.values.items()):
        before = {series: last.values[series] for series in fallen}
        return Step(replace(now, doubt="back", before=before), last.values, fallen=fallen)
    return Step(replace(now, doubt="older", before=last.values), None, fallen=fallen)


def _wait(last: GroupState, now: GroupState, fallen: frozenset[Series], *, alive: bool, certain: bool) -> Step:
    """After an older page: the values before it come back, or never. `alive`: start times say it is one process."""
    before = last.before or {}
    if _is_back(now.values, before):
        return Step(replace(now, doubt="back"), before)
    if fallen and not alive and _is_deep(before, now.values):
        return Step(replace(now, doubt="fell", before=before), None)
    calm = 0 if fallen or certain else last.calm + 1
    if calm < _CALM:
        return Step(replace(now, doubt="older", before=before, calm=calm), None)
    return Step(now, None)


def _watch(last: GroupState, now: GroupState, fallen: frozenset[Series], *, certain: bool) -> Step:
    """After a fall that is over: the next one soon makes the source unstable, unless its counters are the same."""
    if fallen:
        return _slip(last, now, fallen) if certain else Step(replace(now, doubt="unstable"), None, unstable=True)
    calm = last.calm + 1
    before = last.before or {}
    back = {series: value for series, value in before.items() if now.values.get(series, -1.0) >= value}
    return Step(replace(now, doubt="back", calm=calm) if calm < _CALM else now, {**last.values, **back})


def _calm_down(last: GroupState, now: GroupState, *, fell: bool) -> Step:
    calm = 0 if fell else last.calm + 1
    if calm < _CALM:
        return Step(replace(now, doubt="unstable", calm=calm), None, unstable=True)
    return Step(now, None)


def _resolve(last: GroupState, now: GroupState) -> Step:
    """What an unexplained fall was, now that the group rises from it."""
    before = last.before or {}
    if _is_back(now.values, before) and last.doubt == "fell":
        return Step(replace(now, doubt="rose", before=before), None)
    return Step(now, {}, restarted=True)


def _is_back(values: Mapping[Series, float], before: Mapping[Series, float]) -> bool:
    return all(value >= before.get(series, value) for series, value in values.items())


def _is_deep(before: Mapping[Series, float], values: Mapping[Series, float]) -> bool:
    """Whether a fall may be a restart's."""
    return any(before.get(series, 0.0) > 0 and value <= _DEEP * before[series] for series, value in values.items())


def _are_same_counters(one: GroupState, other: GroupState) -> bool:
    """Whether counters say to the microsecond that they were made at the same moments: then none of them was reset."""
    both = one.created.keys() & other.created.keys()
    return bool(both) and all(one.created[series] == other.created[series] for series in both)


def _start_moved(last: GroupState, now: GroupState) -> Literal["later", "earlier", "same", "unknown"]:
    moves = [now.created[series] - moment for series, moment in last.created.items() if series in now.created]
    if last.started is not None and now.started is not None:
        moved = now.started - last.started
        if moved > SAME_MOMENT:  # whatever counters say of themselves
            return "later"
        moves.append(moved)
    if not moves:
        return "unknown"
    if min(moves) < -SAME_MOMENT:
        return "earlier"
    return "later" if max(moves) > SAME_MOMENT else "same"
