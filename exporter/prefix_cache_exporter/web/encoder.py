"""prometheus-client's expositions, with each series' text rendered once.

Most of a page's cost is the text of its labels, which is the same at every scrape. So the library is asked for the text
of a series when it first appears, and afterwards only the value is written behind it. What is not a plain sample is
left to the library every time.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from prometheus_client import Metric
from prometheus_client.utils import floatToGoString

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prometheus_client.registry import Collector
    from prometheus_client.samples import Sample

_TRAILER = b"# EOF\n"
_APART = ("_created", "_gsum", "_gcount")
"""Suffixes of samples that the text format puts behind their family."""
_REMEMBERED = 50_000
"""Texts remembered before all are rendered anew; a ledger has far fewer, unless its series come and go."""


class Encoder:
    """Encodes pages; safe for threads.

    Args:
        generate: one of prometheus-client's `generate_latest`.
    """

    def __init__(self, generate: Callable[[Collector], bytes]) -> None:
        self._generate = generate
        self._trailer = _TRAILER.decode() if generate(_Given()).endswith(_TRAILER) else ""
        self._heads: dict[tuple[str, str, str, str], str] = {}
        self._series: dict[tuple[object, ...], str] = {}

    def __call__(self, collector: Collector) -> bytes:
        """The page of a collector, byte for byte as prometheus-client has it."""
        if len(self._series) + len(self._heads) > _REMEMBERED:
            self._heads, self._series = {}, {}
        lines = list(chain.from_iterable(self._lines(metric) for metric in collector.collect()))
        return "".join([*lines, self._trailer]).encode()

    def _lines(self, metric: Metric) -> Iterator[str]:
        if not all(map(_is_plain, metric.samples)):
            yield self._rendered(metric)
            return
        key = (metric.name, metric.type, metric.documentation, metric.unit)
        head = self._heads.get(key)
        if head is None:
            head = self._heads[key] = self._rendered(_with(metric, []))
        yield head
        series, family = self._series, (metric.name, metric.type)
        for sample in metric.samples:
            labels = (*family, sample.name, *sample.labels.items())
            text = series.get(labels)
            if text is None:
                text = series[labels] = self._text(metric, sample, head)
            value = floatToGoString(sample.value)  # type: ignore[no-untyped-call]  # it has no types
            yield f"{text}{value}\n"

    def _text(self, metric: Metric, sample: Sample, head: str) -> str:
        """A sample's line up to its value."""
        line = self._rendered(_with(metric, [sample._replace(value=0)])).removeprefix(head)
        return line.removesuffix("0.0\n")

    def _rendered(self, metric: Metric) -> str:
        return self._generate(_Given(metric)).decode().removesuffix(self._trailer)


class _Given:
    """A collector of these metrics."""

    def __init__(self, *metrics: Metric) -> None:
        self._metrics = metrics

    def collect(self) -> tuple[Metric, ...]:
        return self._metrics


def _is_plain(sample: Sample) -> bool:
    special = sample.timestamp is not None or sample.exemplar or sample.native_histogram or sample.value is None
    return not special and not sample.name.endswith(_APART)


def _with(metric: Metric, samples: list[Sample]) -> Metric:
    found = Metric(metric.name, metric.documentation, metric.type, metric.unit)
    found.samples = samples
    return found
