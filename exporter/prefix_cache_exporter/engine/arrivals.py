"""What counts from where that was not on the last page: a rank, a replica, a value of a label that appears.

It is new, and all it has counted is new, if it began after the last page was read. Where the page has start times of
single counters, one that is no younger than what that page already showed did not: it was there under other labels, or
was kept from the page. If it is one counter of those that went, told by the very moment at which both were made, it
goes on where that one was. Everything else that is not new has nothing to count from.

vLLM's V1 engine makes all of its series at its start, so that on the page of a process seen before no group is new
without a start time that says so. Ray makes a series when it is first counted, and the V0 engine makes its only group
so. prometheus-client notes when a series is made:
https://github.com/prometheus/client_python/blob/v0.26.0/prometheus_client/metrics.py#L335.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from .restarts import SAME_MOMENT

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from .reading import Group, Series
    from .restarts import GroupState
    from .snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a group that appears counts from.

    Attributes:
        since: the values that increases are counted from, or None where they are not known.
        was: the group that it was before, under other labels; None where it is new or not known.
        fresh: whether start times show that all it has counted came after the last page.
        restarted: whether it is of an engine that took the place of the one that was watched.
    """

    since: Mapping[Series, float] | None
    was: Group | None = None
    fresh: bool = False
    restarted: bool = False


class Arrivals:
    """Judges what appears, by what was there before.

    Args:
        previous: the last reading.
        present: groups on the page now.
        lazy: whether a series first appears when it is first counted.

    Attributes:
        gone: groups that are not on the page now and still remembered; what returns under other labels is taken out,
            and what may have done so is marked, so that nothing is counted twice if it comes back.
    """

    def __init__(self, previous: Snapshot, present: Collection[Group], *, lazy: bool) -> None:
        self._previous, self._lazy = previous, lazy
        self._stays = not previous.groups.keys().isdisjoint(present)
        self.gone = {group: state for group, state in previous.groups.items() if group not in present}

    def group(self, now: GroupState) -> Origin:
        """Where a group that was never seen counts from."""
        if self._previous.origin:
            return Origin({})
        process = self._process(now)
        if process == "later":
            return Origin({}, fresh=True, restarted=True)
        if now.created and self._youngest is not None:
            if min(now.created.values()) > self._youngest and process != "earlier":
                # Beside others it is one more of a living engine.
                return Origin({}, fresh=True, restarted=not process and not self._stays)
            twins = [group for group, state in self.gone.items() if _are_twins(state, now)]
            if len(twins) == 1:
                return Origin(self.gone.pop(twins[0]).values, twins[0])
            self.suspect(now)
            return Origin(None)
        known = process == "earlier" or (process == "same" and not self._lazy)
        return Origin(None) if self.suspect(now) or known else Origin({})

    def series(self, series: Series, now: GroupState, last: GroupState) -> tuple[float | None, tuple[Series, ...]]:
        """The value that a series counts from which was not in its group, and the series that it may have been before.

        None where the value is not known.
        """
        kin = [one for one in last.values if one[:2] == series[:2]]
        if series.part and any(one.by == series.by for one in kin):
            return None, ()  # a histogram has all its buckets from its beginning on
        left = [one for one in kin if one.part == series.part and one not in now.values]
        value, moment = now.values[series], _made(now, series)
        if moment is None or self._youngest is None:
            suspects = tuple(one for one in left if 0 < last.values[one] <= value)
            return (None if suspects else 0.0), suspects
        if moment > self._youngest:
            return 0.0, ()
        twins = tuple(one for one in left if _made(last, one) == moment and last.values[one] <= value)
        return (last.values[twins[0]] if len(twins) == 1 else None), twins

    def suspect(self, now: GroupState) -> bool:
        """Marks groups that went and may be this one; whether there are any."""
        suspects = [group for group, state in self.gone.items() if _may_be(state, now)]
        for group in suspects:
            self.gone[group] = replace(self.gone[group], doubt="renamed")
        return bool(suspects)

    @cached_property
    def _started(self) -> float | None:
        """When the youngest process that was seen started."""
        states = self._previous.groups.values()
        return max((state.started for state in states if state.started is not None), default=None)

    @cached_property
    def _youngest(self) -> float | None:
        """When the youngest counter that was seen was made."""
        states = self._previous.groups.values()
        return max((moment for state in states for moment in state.created.values()), default=None)

    def _process(self, now: GroupState) -> Literal["later", "same", "earlier", ""]:
        """The process of a group, beside the youngest that was seen; empty where nothing tells."""
        if now.started is None or self._started is None:
            return ""
        if abs(now.started - self._started) <= SAME_MOMENT:
            return "same"
        return "later" if now.started > self._started else "earlier"


def _are_twins(one: GroupState, other: GroupState) -> bool:
    """Whether two groups are the same counters, by the moments at which they were made."""
    both = one.created.keys() & other.created.keys()
    made = both and all(one.created[series] == other.created[series] for series in both)
    return bool(made) and not one.doubt and _went_on(one, other)


def _may_be(one: GroupState, other: GroupState) -> bool:
    """Whether nothing speaks against two groups being the same counters, and counting them anew would show."""
    apart = one.started is not None and other.started is not None and abs(one.started - other.started) > SAME_MOMENT
    return not apart and _went_on(one, other) and any(one.values[series] for series in one.values.keys() & other.values)


def _went_on(one: GroupState, other: GroupState) -> bool:
    return all(other.values.get(series, value) >= value for series, value in one.values.items())


def _made(state: GroupState, series: Series) -> float | None:
    return state.created.get(series._replace(part=""))
