"""The process that `memory.py` looks at: polls a server thousands of times, and writes down its resident memory.

Everything is real but for time: HTTP from a server on loopback, maps, ledger, a state file, a commit after every poll
and a scrape after every tenth. The parts are those of `serve`, so that what it imports is resident here, too.
"""

from __future__ import annotations

import json
import sys

from benchmarks.poll import Standing, quiet
from benchmarks.resident import resident
from prefix_cache_exporter.config.model import EngineSource
from prefix_cache_exporter.engine.maps import load_maps
from prefix_cache_exporter.engine.poller import EnginePoller
from prefix_cache_exporter.labels import Limits
from prefix_cache_exporter.recorder import Recorder
from prefix_cache_exporter.serve import sidecar
from prefix_cache_exporter.state import Store
from prefix_cache_exporter.web.http import Request
from prefix_cache_exporter.web.metrics import MetricsPage


def polled(url: str, polls: int, state: str) -> dict[str, float]:
    """MB before the first poll, after a tenth of them and at the end."""
    quiet()
    recorder = Recorder(Store(state), Limits(), hold_seconds=0)
    poller = EnginePoller(EngineSource(name="vllm", url=url), recorder, Standing(), load_maps())
    page = MetricsPage([sidecar.LedgerCollector(recorder)])
    marks = {"0": resident()}
    for number in range(1, polls + 1):
        failure = poller.poll()
        if failure:
            raise RuntimeError(failure)
        recorder.commit()
        if number % 10 == 0:
            page(Request("GET", "/metrics"))
        if number in (polls // 10, polls):
            marks[str(number)] = resident()
    return marks


if __name__ == "__main__":
    sys.stdout.write(json.dumps(polled(sys.argv[1], int(sys.argv[2]), sys.argv[3])))
