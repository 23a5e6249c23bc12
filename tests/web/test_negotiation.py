from __future__ import annotations

import pytest

from prefix_cache_exporter.web.negotiation import OPENMETRICS, TEXT, choose, takes_gzip

PROMETHEUS_2 = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", TEXT),
        ("*/*", TEXT),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", TEXT),
        ("text/plain;version=0.0.4", TEXT),
        (PROMETHEUS_2, OPENMETRICS),
        (PROMETHEUS_3, OPENMETRICS),
        ("application/openmetrics-text", OPENMETRICS),
        ('Application/OpenMetrics-Text; Version="1.0.0"', OPENMETRICS),
        ("application/openmetrics-text;version=0.0.1", TEXT),
        ("application/openmetrics-text;version=2.0.0", TEXT),
        ("text/plain;q=1,application/openmetrics-text;version=1.0.0;q=0.2", TEXT),
        ("application/openmetrics-text;version=1.0.0;q=0", TEXT),
        ("application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited", TEXT),
        ("text/plain; version=banana", TEXT),
        (";;;,,q=,=", TEXT),
        ("application/openmetrics-text;q=banana", TEXT),
    ],
)
def test_forms(accept, content_type):
    assert choose(accept)[1] == content_type


@pytest.mark.parametrize(
    ("accept", "taken"),
    [("", False), ("gzip", True), ("deflate, gzip;q=0.5", True), ("gzip;q=0", False), ("*", True), ("br", False)],
)
def test_compression(accept, taken):
    assert takes_gzip(accept) is taken
