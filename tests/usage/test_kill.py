"""A log is written and rotated while the sidecar is killed again and again; not a record is lost or counted twice.

KILL_SEED repeats a run; the seed is printed where it fails. PREFIX_CACHE_KILLS and PREFIX_CACHE_RECORDS shorten it.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections import Counter
from typing import TYPE_CHECKING

import pytest
import yaml

from prefix_cache_exporter import measures
from support.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KILLS = int(os.environ.get("PREFIX_CACHE_KILLS", "100"))
RECORDS = int(os.environ.get("PREFIX_CACHE_RECORDS", "200000"))
FAMILIES = (
    "requests",
    "prompt_tokens",
    "cached_prompt_tokens",
    "output_tokens",
    "hit_requests",
    "uncached_prompt_tokens",
)


class Writer:
    """Writes records without ids, so that nothing but positions keeps them from being counted twice."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self.path, self.rng = folder / "app.log", rng
        self.file = self.path.open("ab", buffering=0)
        self.sums: Counter[str] = Counter()
        self.written = self.rotations = 0
        self.half = b""
        self.revision = "r0"

    def record(self) -> bytes:
        rng, number = self.rng, self.written
        prompt, output = rng.randint(1, 9000), rng.randint(1, 900)
        cached = rng.choice((0, prompt // 2, prompt))
        usage = {
            "prompt_tokens": prompt,
            "completion_tokens": output,
            "total_tokens": prompt + output,
            "prompt_tokens_details": {"cached_tokens": cached},
        }
        line = {
            "number": number,
            "model": "gpt-4o",
            "metadata": {"revision": self.revision},
            "usage": usage,
        }
        self.written += 1
        self.sums.update(
            requests=1,
            prompt_tokens=prompt,
            output_tokens=output,
            cached_prompt_tokens=cached,
            uncached_prompt_tokens=prompt - cached,
            hit_requests=cached > 0,
        )
        return json.dumps(line).encode() + b"\n"

    def write(self, count: int) -> None:
        """Writes whole records and, in between, half of one."""
        data = self.half + b"".join(self.record() for _ in range(min(count, RECORDS - self.written)))
        cut = len(data) if self.rng.random() < 0.5 else max(0, len(data) - self.rng.randint(1, 150))
        self.half = data[cut:]
        self.file.write(data[:cut])

    def finish_line(self) -> None:
        """Writes the rest of a record."""
        self.file.write(self.half)
        self.half = b""

    def rotate(self) -> None:
        """Rotates in one of several ways. A copy is made of whole lines only, as a writer that appends leaves them."""
        self.finish_line()
        self.rotations += 1
        name = self.path.with_name(f"app.log.{self.rotations}")
        kind = self.rng.choice(("rename", "rename", "copytruncate", "pack"))
        if kind == "copytruncate":
            shutil.copyfile(self.path, name)
            self.file.truncate(0)
            return
        self.path.rename(name)
        if self.rng.random() < 0.5:  # the writer goes on for a while before it opens the new file
            self.file.write(b"".join(self.record() for _ in range(min(20, RECORDS - self.written))))
        self.file.close()
        self.file = self.path.open("ab", buffering=0)
        if kind == "pack":
            name.with_name(name.name + ".gz").write_bytes(gzip.compress(name.read_bytes(), 1))
            name.unlink()


class Sidecar:
    """The real program, which comes up on the same port every time."""

    def __init__(self, folder: Path, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/metrics"
        self.log = (folder / "sidecar.log").open("ab")
        self.config = folder / "config.yaml"
        self.config.write_text(
            yaml.safe_dump({
                "web": {"listen_address": [f"127.0.0.1:{port}"]},
                "state": {"path": str(folder / "state.db"), "hold_seconds": 5, "commit_seconds": 0.1},
                "usage": [{
                    "name": "gw",
                    "format": "openai.chat",
                    "paths": [str(folder / "logs" / "app.log")],
                    "fields": {"template_revision": "$.metadata.revision"},
                }],
            })
        )  # fmt: skip

    def start(self) -> None:
        command = [sys.executable, "-m", "prefix_cache_exporter", "serve", "--config.file", str(self.config)]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)

    def kill(self) -> None:
        self.process.kill()
        assert self.process.wait() == -signal.SIGKILL, "it ended by itself"

    def wait(self, condition: Callable[[str], bool]) -> None:
        """Waits until the page says something, or for a minute; what it should say is asserted afterwards."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                if condition(self.page()):
                    break
            time.sleep(0.2)

    def page(self) -> str:
        with urllib.request.urlopen(self.url, timeout=5) as answer:
            return answer.read().decode()


def sums(page: str) -> Counter[str]:
    found: Counter[str] = Counter()
    names = {measures.USAGE[family].series_name: family for family in FAMILIES}
    for line in page.splitlines():
        name = names.get(line.partition("{")[0])
        if name:
            found[name] += int(float(line.rsplit(" ", 1)[1]))
    return found


def lost(page: str) -> list[str]:
    return [
        line for line in page.splitlines() if line.startswith(("prefix_cache_usage_lost_", "prefix_cache_usage_dup"))
    ]


class Prometheus:
    def __init__(self, folder: Path, target: int) -> None:
        self.base = f"http://127.0.0.1:{free_port()}"
        config = folder / "prometheus.yml"
        jobs = [{"job_name": "sidecar", "static_configs": [{"targets": [f"127.0.0.1:{target}"]}]}]
        every = {"scrape_interval": "200ms", "scrape_timeout": "200ms"}
        config.write_text(yaml.safe_dump({"global": every, "scrape_configs": jobs}))
        self.process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={config}",
                f"--storage.tsdb.path={folder / 'tsdb'}",
                f"--web.listen-address={self.base.removeprefix('http://')}",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def query(self, expression: str) -> list[dict]:
        address = f"{self.base}/api/v1/query?{urllib.parse.urlencode({'query': expression})}"
        with urllib.request.urlopen(address, timeout=30) as answer:
            return json.load(answer)["data"]["result"]

    def value(self, expression: str) -> float:
        (one,) = self.query(expression)
        return float(one["value"][1])

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


def begin_revision(revision: str, writer: Writer, sidecar: Sidecar, prometheus: Prometheus) -> None:
    """Writes a revision's first record and waits until its series was scraped, at 0.

    The hold that lets Prometheus see the 0 is measured in seconds, and a killed sidecar has no page to scrape.
    """
    writer.revision, known = revision, writer.revision
    if revision != known or not writer.written:
        writer.write(1)
        writer.finish_line()  # half a record makes no series to wait for
        selector = f'prefix_cache_usage_requests_total{{template_revision="{revision}"}}'
        sidecar.wait(lambda _: prometheus.query(selector) != [])
        assert prometheus.query(selector) != [], f"nothing of {revision} was scraped"


@pytest.mark.kill
@pytest.mark.prometheus
def test_not_a_record_is_lost_or_counted_twice(tmp_path):
    if shutil.which("prometheus") is None:
        pytest.skip("Debian's prometheus is not installed")
    seed = os.environ.get("KILL_SEED") or str(time.time_ns())
    print(f"KILL_SEED={seed}")  # noqa: T201  # pytest shows it where the test fails
    rng = random.Random(seed)
    (tmp_path / "logs").mkdir()
    port = free_port()
    writer, sidecar, prometheus = Writer(tmp_path / "logs", rng), Sidecar(tmp_path, port), Prometheus(tmp_path, port)
    try:
        for life in range(KILLS):
            sidecar.start()
            if life == 0:  # what was rotated before the first look is history, and not counted
                sidecar.wait(lambda page: "prefix_cache_usage_log_files" in page)
            begin_revision(f"r{life * 3 // KILLS}", writer, sidecar, prometheus)
            end = time.monotonic() + rng.choice((0.3, 0.9, 1.2, 1.5)) * rng.uniform(0.8, 1.2)
            goal = RECORDS * (life + 1) // KILLS
            while (left := end - time.monotonic()) > 0:
                writer.write(rng.randint(0, 2 * max(0, goal - writer.written) // 10))
                if rng.random() < 0.1:
                    writer.rotate()
                time.sleep(min(left, 0.05))
            sidecar.kill()
            writer.write(goal - writer.written)
            if rng.random() < 0.2:
                writer.rotate()
        writer.rotate()
        sidecar.start()
        sidecar.wait(lambda page: sums(page)["requests"] >= writer.sums["requests"])
        time.sleep(1.5)  # a last scrape or two
        page = sidecar.page()
        assert writer.written == RECORDS
        assert sums(page) == writer.sums
        assert [line for line in lost(page) if not line.endswith(" 0.0")] == []
        for family in FAMILIES:
            name = measures.USAGE[family].series_name
            assert (
                prometheus.value(f"sum(max_over_time({name}[20m]) - min_over_time({name}[20m]))") == writer.sums[family]
            )
            assert prometheus.value(f"sum(resets({name}[20m]))") == 0
            increase = prometheus.value(f"sum(increase({name}[20m]))")
            assert increase == pytest.approx(writer.sums[family], rel=0.02), family
        sidecar.process.terminate()
        assert sidecar.process.wait(25) == 0
        assert writer.rotations > KILLS / 5
    finally:
        sidecar.process.kill()
        sidecar.process.wait()
        sidecar.log.close()
        prometheus.stop()
        writer.file.close()
