"""What an engine counted between two readings.

Increases are taken per group of series that restart together, then added up per engine. An interval whose cached tokens
cannot be trusted is excluded from both sides of the population hit ratio, and its prompt tokens count apart, by reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .delta import Delta
from .flight import explained_in_flight
from .gains import Gains
from .judge import Judge
from .restarts import GroupState
from .snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .delta import EngineDelta
    from .reading import EngineKey, Reading

_HELD_GROUPS = 256
"""Groups that are not on the page any more and still remembered: if one returns, it goes on where it was."""


def deltas(
    previous: Snapshot | None, reading: Reading, *, final: bool = False, away: bool = False
) -> tuple[Delta, Snapshot | None]:
    """What was counted since the previous reading, and what to remember for the next one.

    Args:
        previous: what the last call returned, also after a restart of the exporter; None before the first.
        reading: the present reading.
        final: whether no reading follows that could show more. Then a fall that no start time explains is a restart at
            once, and a part that exceeds its whole is given up. Without it, the next readings decide (see `restarts`
            and `parts`); nothing is lost meanwhile.
        away: whether nobody answered at the engine's address since: then, too, a fall that no start time explains is a
            restart at once.

    Returns:
        The increases, and the snapshot. A reading of which nothing can be used, or which has not a single counter where
        there were some, as the page of another program, leaves the snapshot as it was.
    """
    if not reading.usable or reading.plan is None or (previous is not None and previous.groups and not reading.groups):
        return Delta({}, _withheld(reading, {}), counted=False), previous
    plan = reading.plan
    gains = Gains(plan, reading, previous, fall_restarts=final or away, final=final)
    for group, values in reading.groups.items():
        gains.take(group, GroupState(values, reading.created.get(group, {}), reading.started))
    in_flight = {key: explained_in_flight(reading, key) for key in reading.engines}
    judge = Judge(plan, reading, gains, previous, final=final)
    for key in reading.engines:
        judge.judge(key, in_flight[key])
    active = {id_ for delta in gains.engines.values() for id_ in delta.caveats}
    delta = Delta(
        gains.engines,
        _withheld(reading, gains.engines),
        tuple(id_ for id_ in plan.dialect.caveats if id_ in active),
        dict(gains.anomalies),
        gains.restarts,
        counted=previous is not None,
    )
    return delta, _snapshot(reading, gains, judge, in_flight)


def since_start(reading: Reading) -> Delta:
    """What the engines counted since they started, in one interval."""
    return deltas(Snapshot.zero(), reading, final=True)[0]


def _snapshot(reading: Reading, gains: Gains, judge: Judge, in_flight: Mapping[EngineKey, float]) -> Snapshot:
    sources = {measure: source for measure, source in gains.sources.items() if source}
    lost = {
        key: frozenset(measure for measure, reason in reasons.items() if reason != "no_series")
        for key, reasons in reading.engine_withheld.items()
    }
    return Snapshot(
        sources, {**gains.states, **dict([*gains.gone.items()][-_HELD_GROUPS:])}, in_flight, lost, carried=judge.carried
    )


def _withheld(reading: Reading, engines: Mapping[EngineKey, EngineDelta]) -> dict[str, str]:
    withheld = dict(reading.withheld)
    for delta in engines.values():
        for measure, reason in delta.withheld.items():
            withheld.setdefault(measure, reason)
    return withheld
