"""Resident memory of the sidecar's parts over thousands of polls, in a process of their own.

Everything is real but for time: HTTP from a server on loopback, maps, ledger, a state file, a commit after every poll
and a scrape after every tenth. Called with an address, this module is that process.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.figure import Figure
from benchmarks.loopback import serving
from benchmarks.pages import sized
from benchmarks.resident import resident

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST = 64.0
FLAT = 1.0
"""MB that the last nine tenths of the polls may add."""
_SAMPLES = 2_000
_POLLS = 10_000
_PAGES = 16
_ROOT = Path(__file__).resolve().parents[1]


def figures(*, quick: bool) -> Iterator[Figure]:
    """Polls, and looks at the process's memory after a tenth of the polls and at the end."""
    polls = 100 if quick else _POLLS
    pages = [sized(100 if quick else _SAMPLES, step) for step in range(_PAGES)]
    with serving(pages) as url, tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.memory", url, str(polls), str(Path(folder) / "state.db")]
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=_ROOT)
    marks = json.loads(done.stdout)
    yield Figure("memory", "before the first poll", marks["0"], "MB")
    yield Figure("memory", f"after {polls // 10:,} polls", marks[str(polls // 10)], "MB")
    yield Figure("memory", f"after {polls:,} polls", marks[str(polls)], "MB", MOST)
    growth = marks[str(polls)] - marks[str(polls // 10)]
    yield Figure("memory", f"growth over the last {polls - polls // 10:,}", growth, "MB", FLAT)


def _poll(url: str, polls: int, state: str) -> None:
    # The parts as `serve` puts them together, so that what it imports is resident here, too.
    # Imported where they are measured: the parent process, which only starts this one, stays small.
    from benchmarks.poll import Standing, quiet  # noqa: PLC0415  # in the measured process alone
    from prefix_cache_exporter.config.model import EngineSource  # noqa: PLC0415  # in the measured process alone
    from prefix_cache_exporter.engine.maps import load_maps  # noqa: PLC0415  # in the measured process alone
    from prefix_cache_exporter.engine.poller import EnginePoller  # noqa: PLC0415  # in the measured process alone
    from prefix_cache_exporter.labels import Limits  # noqa: PLC0415  # in the measured process alone
    from prefix_cache_exporter.recorder import Recorder  # noqa: PLC0415  # in the measured process alone
    from prefix_cache_exporter.serve import sidecar  # noqa: PLC0415  # in the measured process alone
    from prefix_cache_exporter.state import Store  # noqa: PLC0415  # in the measured process alone
    from prefix_cache_exporter.web.http import Request  # noqa: PLC0415  # in the measured process alone
    from prefix_cache_exporter.web.metrics import MetricsPage  # noqa: PLC0415  # in the measured process alone

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
    sys.stdout.write(json.dumps(marks))


if __name__ == "__main__":
    _poll(sys.argv[1], int(sys.argv[2]), sys.argv[3])
