"""The ledger as a prometheus-client collector: one snapshot per scrape, nothing moves."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from .recorder import Exposed, bound_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from .measures import Family
    from .recorder import Recorder


_ORIGINS = 3
"""Origins that HELP names; more than so many releases side by side are not worth a longer line."""


class LedgerCollector:
    """Shows what the recorder has committed, and its gauges."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def collect(self) -> Iterator[Metric]:
        """Yields the families of one snapshot in the catalogue's order."""
        began = self._recorder.now()  # what is born while the page is being made was not on it
        origins = self._recorder.origins()
        for family, rows in groupby(self._recorder.exposed(), key=lambda row: row.family):
            yield _metric(family, rows, _help(family, origins.get(family.name, ())))
        self._recorder.note_scrape(began)


def _help(family: Family, origins: Sequence[str]) -> str:
    """What a family is, and what its sources make it of: several releases side by side may differ."""
    if not origins:
        return family.help
    more = f", and {len(origins) - _ORIGINS} more" if len(origins) > _ORIGINS else ""
    return f"{family.help} From {', '.join(origins[:_ORIGINS])}{more}."


def _metric(family: Family, rows: Iterable[Exposed], help_: str) -> Metric:
    metric: CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily
    match family.kind:
        case "counter":
            metric = CounterMetricFamily(family.name, help_, labels=family.labels)
            for row in rows:
                metric.add_metric(row.values, row.parts[""] / family.scale if family.scale > 1 else row.parts[""])
        case "histogram":
            metric = HistogramMetricFamily(family.name, help_, labels=family.labels)
            for row in rows:
                metric.add_metric(row.values, _buckets(row), row.parts.get("sum", 0))
        case _:
            metric = GaugeMetricFamily(family.name, help_, labels=family.labels)
            for row in rows:
                metric.add_metric(row.values, row.parts[""])
    return metric


def _buckets(row: Exposed) -> list[tuple[str, float]]:
    bounds = sorted(float(part) for part in row.parts if part != "sum")
    by_bound = {float(part): amount for part, amount in row.parts.items() if part != "sum"}
    return [(bound_text(bound), by_bound[bound]) for bound in bounds]
