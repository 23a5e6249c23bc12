"""Series that an expression may read: what the exporter emits, what rules record, and `up`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from prefix_cache_exporter.measures import FAMILIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from prefix_cache_exporter.pack.model import Series

Kind = Literal["counter", "gauge", "rate", "ratio", "level", "number"]
TARGET_LABELS = frozenset({"job", "instance"})


@dataclass(frozen=True, slots=True)
class Shape:
    """What is known of a value: its kind, its labels, and whether a target's own labels come on top."""

    kind: Kind
    labels: frozenset[str] = frozenset()
    open: bool = False

    @property
    def scalar(self) -> bool:
        """A number without labels."""
        return self.kind == "number"


@dataclass(frozen=True, slots=True)
class Known:
    """Series by name, and the target labels that an aggregation may keep."""

    shapes: Mapping[str, Shape]
    target_labels: frozenset[str] = TARGET_LABELS


def known_series(recorded: Iterable[Series], target_labels: Iterable[str] = ()) -> Known:
    """The exporter's families, these recorded series, and the target labels of the pack file."""
    shapes: dict[str, Shape] = {"up": Shape("gauge", frozenset(), open=True)}
    for family in FAMILIES.values():
        labels = frozenset(family.labels)
        if family.kind == "histogram":
            shapes[f"{family.name}_sum"] = shapes[f"{family.name}_count"] = Shape("counter", labels, open=True)
            shapes[f"{family.name}_bucket"] = Shape("counter", labels | {"le"}, open=True)
        elif family.kind == "counter":
            shapes[family.series_name] = Shape("counter", labels, open=True)
        else:
            shapes[family.series_name] = Shape("ratio" if family.unit == "ratio" else "gauge", labels, open=True)
    for series in recorded:
        shapes[series.name] = Shape(series.kind, frozenset(series.labels))
    return Known(shapes, TARGET_LABELS | frozenset(target_labels))
