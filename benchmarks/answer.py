"""The CPU time of one answer to `/metrics`, with the ledger of a page of five engines behind it."""

from __future__ import annotations

import statistics
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.figure import Figure
from benchmarks.pages import sized
from benchmarks.poll import cpu_seconds, quiet, rig
from prefix_cache_exporter.collector import LedgerCollector
from prefix_cache_exporter.web.http import Request
from prefix_cache_exporter.web.metrics import MetricsPage

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST = 10.0
_SAMPLES = 2_000
_ROUNDS = 30
_FORMATS = {
    "text": "text/plain;version=0.0.4",
    "OpenMetrics": "application/openmetrics-text;version=1.0.0",
}


def figures(*, quick: bool) -> Iterator[Figure]:
    """Answers in each format, after a poll before every one."""
    quiet()
    poller, recorder = rig([sized(100 if quick else _SAMPLES, step) for step in range(8)])
    page = MetricsPage([LedgerCollector(recorder)])
    for name, accept in _FORMATS.items():
        answer = partial(page, Request("GET", "/metrics", headers={"accept": accept}))
        times = []
        for _ in range(2 if quick else _ROUNDS):
            poller.poll()
            recorder.commit()
            times.append(1e3 * cpu_seconds(answer))
        samples = sum(not line.startswith("#") for line in _text(answer().body).splitlines())
        yield Figure("answer", f"/metrics as {name}, {samples} samples", statistics.median(times), "ms CPU", LONGEST)


def _text(body: bytes | str) -> str:
    return body.decode() if isinstance(body, bytes) else body
