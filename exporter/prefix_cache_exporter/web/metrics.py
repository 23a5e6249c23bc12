from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

from prometheus_client import Metric

from prefix_cache_exporter import measures

from .http import Request, Response
from .negotiation import choose, takes_gzip

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from prometheus_client.registry import Collector

_LEDGER = frozenset({"counter", "histogram"})


class CaughtUp:
    """Shows a ledger's counters only once it has caught up.

    After a restart, logs and pages have moved on. Until they have been read, the counters of both planes stay off the
    page: an absent series is a gap that `increase()` bridges, a low one would be a value that Prometheus keeps.
    """

    def __init__(self, collector: Collector, is_caught_up: Callable[[], bool]) -> None:
        self._collector, self._is_caught_up = collector, is_caught_up

    def collect(self) -> Iterator[Metric]:
        """The families that may be shown now."""
        is_caught_up = self._is_caught_up()
        for metric in self._collector.collect():
            family = measures.FAMILIES.get(metric.name)
            waits = family is not None and family.kind in _LEDGER and family.plane in {"engine", "usage"}
            if is_caught_up or not waits:
                yield metric


class MetricsPage:
    """Answers `/metrics`: one reading of the collectors per request, and nothing moves by it."""

    def __init__(self, collectors: Sequence[Collector]) -> None:
        self._collectors = tuple(collectors)

    def __call__(self, request: Request) -> Response:
        """The page in the form that the request asks for."""
        encode, content_type = choose(request.headers.get("accept", ""))
        names = request.query.get("name[]")
        body = encode(_Once(self._collectors, None if names is None else frozenset(names)))
        headers: tuple[tuple[str, str], ...] = (("Vary", "Accept, Accept-Encoding"), ("Cache-Control", "no-store"))
        if takes_gzip(request.headers.get("accept-encoding", "")):
            body, headers = gzip.compress(body, compresslevel=1), (*headers, ("Content-Encoding", "gzip"))
        return Response(body, content_type=content_type, headers=headers)


class _Once:
    """All collectors as one, cut down to samples of the names asked for."""

    def __init__(self, collectors: Iterable[Collector], names: Collection[str] | None) -> None:
        self._collectors, self._names = collectors, names

    def collect(self) -> Iterator[Metric]:
        for collector in self._collectors:
            for metric in collector.collect():
                if self._names is None or metric.name in self._names:
                    yield metric
                    continue
                samples = [sample for sample in metric.samples if sample.name in self._names]
                if samples:
                    cut = Metric(metric.name, metric.documentation, metric.type, metric.unit)
                    cut.samples = samples
                    yield cut
