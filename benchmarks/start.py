"""Wall time from the command to the first answer of `/metrics`, state file and a server to poll included."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import URLError
from urllib.request import urlopen

from benchmarks.figure import Figure
from benchmarks.loopback import free_port, serving
from benchmarks.pages import sized

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST = 1.0
_SAMPLES = 2_000
_ROUNDS = 5
_PATIENCE = 30


def figures(*, quick: bool) -> Iterator[Figure]:
    """Starts the sidecar several times."""
    with serving([sized(100 if quick else _SAMPLES)]) as url:
        starts = [_start(url) for _ in range(1 if quick else _ROUNDS)]
    wall, cpu = (list(times) for times in zip(*starts, strict=True))
    yield Figure("start", "command to first answer", statistics.median(wall), "s", LONGEST)
    yield Figure("start", "the slowest of them", max(wall), "s")
    yield Figure("start", "CPU time of it, whatever else runs", statistics.median(cpu), "s CPU")


def _start(url: str) -> tuple[float, float]:
    """Wall and CPU seconds until the page answers."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        command = [
            *(sys.executable, "-m", "prefix_cache_exporter", "serve", "--vllm", url),
            *("--template", "support", "--template-revision", "r42"),
            *("--web.listen-address", f"127.0.0.1:{port}", "--state.path", str(Path(folder) / "state.db")),
        ]
        began = time.perf_counter()
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                while time.perf_counter() < began + _PATIENCE and process.poll() is None:
                    try:
                        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=_PATIENCE) as answer:
                            answer.read()
                            return time.perf_counter() - began, _cpu_seconds(process.pid)
                    except (URLError, OSError):
                        time.sleep(0.005)
            finally:
                process.kill()  # it would wait for a last poll
    raise RuntimeError("the sidecar did not answer")


def _cpu_seconds(pid: int) -> float:
    after_name = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return sum(int(ticks) for ticks in after_name[11:13]) / os.sysconf("SC_CLK_TCK")
