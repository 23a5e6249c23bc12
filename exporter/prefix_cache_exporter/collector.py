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
    from collections.abc import Iterable, Iterator

    from .measures import Family
    from .recorder import Recorder


class LedgerCollector:
    """Shows what the recorder has committed, and its gauges."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def collect(self) -> Iterator[Metric]:
        """Yields the families of one snapshot in the catalogue's order."""
        for family, rows in groupby(self._recorder.exposed(), key=lambda row: row.family):
            yield _metric(family, rows)
        self._recorder.note_scrape()


def _metric(family: Family, rows: Iterable[Exposed]) -> Metric:
    metric: CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily
    match family.kind:
        case "counter":
            metric = CounterMetricFamily(family.name, family.help, labels=family.labels)
            for row in rows:
                metric.add_metric(row.values, row.parts[""] / family.scale if family.scale > 1 else row.parts[""])
        case "histogram":
            metric = HistogramMetricFamily(family.name, family.help, labels=family.labels)
            for row in rows:
                metric.add_metric(row.values, _buckets(row), row.parts.get("sum", 0))
        case _:
            metric = GaugeMetricFamily(family.name, family.help, labels=family.labels)
            for row in rows:
                metric.add_metric(row.values, row.parts[""])
    return metric


def _buckets(row: Exposed) -> list[tuple[str, float]]:
    bounds = sorted(float(part) for part in row.parts if part != "sum")
    by_bound = {float(part): amount for part, amount in row.parts.items() if part != "sum"}
    return [(bound_text(bound), by_bound[bound]) for bound in bounds]
