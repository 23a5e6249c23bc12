"""What a rule file holds, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .durations import Duration
    from .settings import Severity

SeriesKind = Literal["rate", "ratio", "level"]


@dataclass(frozen=True, slots=True)
class Series:
    """A recorded series: what rules, alerts and dashboards need to know to read it.

    Attributes:
        name: `level:measure:operation`.
        labels: the labels it has; rules drop every other.
        kind: `rate` (per second, may be added), `ratio` (may not), `level` (counts and times).
    """

    name: str
    labels: tuple[str, ...]
    kind: SeriesKind

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Record:
    """A recording rule."""

    series: Series
    expr: str


@dataclass(frozen=True, slots=True)
class Alert:
    """An alerting rule; several may share a name where one idea has several kinds of evidence.

    Attributes:
        name: its constant name, which is also that of its runbook and of its test.
        labels: the labels of `expr`, without those set here; annotations may use no other.
        set_labels: labels that the rule sets beside `severity`.
        dashboard: uid of the dashboard to open first.
    """

    name: str
    expr: str
    labels: tuple[str, ...]
    severity: Severity
    hold: Duration
    summary: str
    description: str
    dashboard: str
    keep: Duration | None = None
    set_labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Group:
    """Rules evaluated in order, one after the other; groups run side by side."""

    name: str
    rules: tuple[Record | Alert, ...]
