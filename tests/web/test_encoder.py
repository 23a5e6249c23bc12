from __future__ import annotations

import math

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, Summary, exposition
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.openmetrics import exposition as openmetrics

from prefix_cache_exporter.web import encoder
from prefix_cache_exporter.web.encoder import Encoder

GENERATORS = {"text": exposition.generate_latest, "openmetrics": openmetrics.generate_latest}


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


def page(registry: CollectorRegistry) -> None:
    """Every kind of family, and label values that need escapes."""
    Gauge("empty", "No series", ["a"], registry=registry)
    gauge = Gauge("level", 'A "level"\\of\nsomething', ["z", "a"], registry=registry)
    gauge.labels('quo"te', "back\\slash").set(math.inf)
    gauge.labels("new\nline", "é").set(0.1)
    gauge.labels("", "1e300").set(1e300)
    Counter("work", "Work", registry=registry).inc(3)
    Histogram("took_seconds", "Time", ["a"], registry=registry, buckets=(0.5, 1)).labels("x").observe(0.7)
    Summary("size", "Size", registry=registry).observe(2)
    Info("built", "Built", registry=registry).info({"version": "1"})


class Marked:
    """A family with time stamps, which are never remembered."""

    def collect(self):
        marked = GaugeMetricFamily("marked", "Marked", labels=["a"])
        marked.add_metric(["1"], 5, timestamp=1700000000)
        yield marked


@pytest.mark.parametrize("generate", GENERATORS.values(), ids=GENERATORS)
def test_pages_are_those_of_prometheus_client_every_time(registry, generate):
    page(registry)
    registry.register(Marked())
    encode = Encoder(generate)
    for value in (1.0, math.nan, -2.5):
        registry._names_to_collectors["level"].labels("", "1e300").set(value)
        assert encode(registry) == generate(registry)


@pytest.mark.parametrize("generate", GENERATORS.values(), ids=GENERATORS)
def test_what_changes_of_a_family_is_seen(generate):
    encode = Encoder(generate)

    class Once:
        def __init__(self, kind, help_, unit=""):
            self.metric = Metric("a_seconds", help_, kind, unit)
            self.metric.add_sample("a_seconds", {"b": "1"}, 1)

        def collect(self):
            return [self.metric]

    for changed in (
        Once("gauge", "One"),
        Once("gauge", "Two"),
        Once("unknown", "Two"),
        Once("gauge", "Two", "seconds"),
    ):
        assert encode(changed) == generate(changed)


@pytest.mark.parametrize("generate", GENERATORS.values(), ids=GENERATORS)
def test_series_that_come_and_go_are_not_kept_for_ever(registry, generate, monkeypatch):
    monkeypatch.setattr(encoder, "_REMEMBERED", 10)
    encode = Encoder(generate)
    gauge = Gauge("level", "Level", ["a"], registry=registry)
    for number in range(30):
        gauge.clear()
        gauge.labels(str(number)).set(number)
        assert encode(registry) == generate(registry)
        assert len(encode._series) <= 11
