"""What is remembered of a target between two readings, in memory and, as JSON, in the state file."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from .reading import EngineKey, Group, Series
from .restarts import GroupState, Start

if TYPE_CHECKING:
    from collections.abc import Mapping

_FORMAT = 1
_PENDING = frozenset({"fell", "rose", "older"})
"""Doubts under which nothing is counted and nothing is lost."""


class SnapshotError(ValueError):
    """Bytes that are not a snapshot of this format."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The last reading, as far as the next one needs it.

    Attributes:
        sources: by measure, what it was counted from; measures that could not be read are absent.
        groups: counters by group.
        in_flight: by engine, prompt tokens that requests in flight could explain.
        lost: by engine, measures that it could not read.
        origin: whether this is the point where everything is 0.
        carried: by engine and measure, increases that the next reading may explain (see `parts`).
    """

    sources: Mapping[str, str]
    groups: Mapping[Group, GroupState]
    in_flight: Mapping[EngineKey, float] = field(default_factory=dict)
    lost: Mapping[EngineKey, frozenset[str]] = field(default_factory=dict)
    origin: bool = False
    carried: Mapping[EngineKey, Mapping[str, float]] = field(default_factory=dict)

    @property
    def pending(self) -> bool:
        """Whether something of earlier intervals may still be counted with the next one."""
        return bool(self.carried) or any(state.doubt in _PENDING for state in self.groups.values())

    @classmethod
    def zero(cls) -> Snapshot:
        """The snapshot before the engine counted anything."""
        return cls({}, {}, origin=True)

    def encode(self) -> bytes:
        """The snapshot as JSON."""
        return msgspec.json.encode(
            {
                "format": _FORMAT,
                "sources": self.sources,
                "origin": self.origin,
                # JSON has no infinity: null stands for requests in flight that explain everything.
                "in_flight": [[*key, value if math.isfinite(value) else None] for key, value in self.in_flight.items()],
                "lost": [[*key, sorted(measures)] for key, measures in self.lost.items()],
                "carried": [[*key, measures] for key, measures in self.carried.items()],
                "groups": [
                    {
                        "group": group,
                        "started": state.started,
                        "doubt": state.doubt,
                        "calm": state.calm,
                        "youngest": state.youngest,
                        "values": _listed(state.values),
                        "created": _listed(state.created),
                        "before": None if state.before is None else _listed(state.before),
                    }
                    for group, state in self.groups.items()
                ],
            }
        )

    @classmethod
    def decode(cls, encoded: bytes) -> Snapshot:
        """Reads a snapshot.

        Raises:
            SnapshotError: where the bytes are none; the next reading is then the first.
        """
        try:
            data = msgspec.json.decode(encoded)
            if data["format"] != _FORMAT:
                raise SnapshotError(f"format: got {data['format']}, expected {_FORMAT}")
            return cls(
                data["sources"],
                {_group(item["group"]): _state(item) for item in data["groups"]},
                {EngineKey(*key): math.inf if value is None else value for *key, value in data["in_flight"]},
                {EngineKey(*key): frozenset(measures) for *key, measures in data["lost"]},
                data["origin"],
                # States that were written before anything was carried over have no such entry.
                {EngineKey(*key): measures for *key, measures in data.get("carried", ())},
            )
        except (msgspec.DecodeError, KeyError, TypeError) as error:
            raise SnapshotError(f"not a snapshot: {' '.join(str(error).split())}") from error


def _listed(values: Mapping[Series, float]) -> list[tuple[str | float, ...]]:
    return [(*series, value) for series, value in values.items()]


def _values(listed: list[list[Any]]) -> dict[Series, float]:
    return {Series(measure, family, by, part): value for measure, family, by, part, value in listed}


def _group(listed: list[Any]) -> Group:
    engine, model, rest = listed
    return Group(engine, model, tuple((name, value) for name, value in rest))


def _state(item: Mapping[str, Any]) -> GroupState:
    before = item["before"]
    youngest = item.get("youngest")  # states that were written before it was noted have no such entry
    return GroupState(
        _values(item["values"]),
        _values(item["created"]),
        item["started"],
        item["doubt"],
        None if before is None else _values(before),
        item["calm"],
        None if youngest is None else Start(*youngest),
    )
