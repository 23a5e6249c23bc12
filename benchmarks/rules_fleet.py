"""All rule groups over a fleet: what one evaluation costs at 100, 300 and 1,000 pods, and what is left above.

Every pod runs one of 4 models and serves 3 templates with 2 live revisions each; its sidecar has both planes. Blocks
hold a quarter of an hour of pod series at 15 s, because no rule reads pods further back than its short window, and six
hours of the recorded series, which is what the long windows read. Each group is asked at one instant, rules one after
the other as Prometheus evaluates them. CPU seconds are those of the Prometheus process. What two cores need is the
larger of half of all groups and the largest group alone, since groups run side by side and rules of one do not;
the time that it took on this machine, with its neighbours, stands beside it.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self, TextIO

import requests

from benchmarks.figure import Figure
from benchmarks.loopback import free_port
from prefix_cache_exporter.measures import ENGINE, EXPORTER, USAGE
from prefix_cache_exporter.pack.model import Record
from prefix_cache_exporter.pack.rules import rule_groups
from prefix_cache_exporter.pack.settings import default_settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prefix_cache_exporter.measures import Family
    from prefix_cache_exporter.pack.model import Group

FLEETS = (100, 300, 1_000)
CORES = 2
MOST_SECONDS = 2.0
STEEPEST = 1.25
"""How much more than in proportion to its pods the largest fleet may cost."""
_SCRAPE, _RAW_SAMPLES = 15, 61
_HISTORY_HOURS, _REPEATS = 6, 3
_END = 1_795_000_000
_MODELS, _TEMPLATES, _REVISIONS = 4, 3, 2
_BANDS = ("0-512", "513-2048", "2049-8192")
_FIXED = {"source": "vllm", "provider": "vllm", "engine": "0", "namespace": "n1", "task": "chat", "status": "ok"}
_VALUES = {
    "attempt": ("first",),
    "currency": ("USD",),
    "component": ("read", "write", "uncached"),
    "ttl": ("5m",),
    "tier": ("device",),
    "reason": ("stop",),
    "prompt_band": _BANDS,
    "cache_state": ("hit", "miss"),
    "state": ("verified", "unverified", "mismatch", "unknown"),
    "hash_algorithm": ("sha256",),
    "job": ("prefix-cache-exporter",),
}
_RELEASES = tuple((f"t{t}", f"r{r}") for t in range(_TEMPLATES) for r in range(_REVISIONS))


@dataclass(frozen=True, slots=True)
class _Measured:
    pods: int
    read: int
    above: int
    cpu: float
    largest: float
    wall: float

    @property
    def two_cores(self) -> float:
        return max(self.cpu / CORES, self.largest)


def figures(*, quick: bool) -> Iterator[Figure]:
    """Time of one evaluation per fleet, how it grows, and the number of series above the rules."""
    measured = [_measure(pods) for pods in ((5, 10) if quick else FLEETS)]
    for one in measured:
        name = f"{one.pods:,} pods"
        yield Figure("rules_fleet", f"{name}: series read", one.read, "series")
        yield Figure("rules_fleet", f"{name}: one evaluation of all groups", one.cpu, "s CPU")
        yield Figure("rules_fleet", f"{name}: the largest group", one.largest, "s CPU")
        yield Figure("rules_fleet", f"{name}: all groups on {CORES} cores", one.two_cores, "s", MOST_SECONDS)
        yield Figure("rules_fleet", f"{name}: the same on this machine now", one.wall, "s")
        yield Figure("rules_fleet", f"{name}: series above the rules", one.above, "series")
    fewer, most = measured[-2:]
    grown = (most.cpu / fewer.cpu) / (most.pods / fewer.pods)
    yield Figure("rules_fleet", f"cost per pod at {most.pods:,} against {fewer.pods:,}", grown, "x", STEEPEST)
    spread = max(one.above for one in measured) - min(one.above for one in measured)
    yield Figure("rules_fleet", "series above the rules that depend on pods", spread, "series", 0)


def _measure(pods: int) -> _Measured:
    groups = [group for file in rule_groups(default_settings()).values() for group in file]
    with tempfile.TemporaryDirectory(prefix="rules-fleet-") as name:
        folder = Path(name)
        read = _blocks(folder, pods, groups)
        with _Prometheus(folder / "data") as server:
            above = sum(server.evaluate(groups).values())  # the first time reads from disk, which is no usual cost
            best = min(([server.cpu(group) for group in groups] for _ in range(_REPEATS)), key=sum)
            wall = min(server.wall(groups) for _ in range(_REPEATS))
            return _Measured(pods, read, above, sum(best), max(best), wall)


def _blocks(folder: Path, pods: int, groups: Sequence[Group]) -> int:
    text, count = folder / "history.om", 0
    with text.open("w") as file:
        for series in _pod_series(pods):
            _write(file, series, _RAW_SAMPLES, _SCRAPE)
            count += 1
        interval = int(default_settings().interval.seconds)
        for group in groups:
            for rule in group.rules:
                if isinstance(rule, Record):
                    for labels in _recorded_labels(rule.series.labels):
                        _write(file, f"{rule.series.name}{{{labels}}}", _HISTORY_HOURS * 3600 // interval, interval)
        file.write("# EOF\n")
    command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", "--quiet", str(text), str(folder / "data")]
    subprocess.run(command, check=True, capture_output=True)
    text.unlink()
    return count


def _write(file: TextIO, series: str, samples: int, step: int) -> None:
    begin = _END - (samples - 1) * step
    file.write("".join(f"{series} {at} {begin + at * step}\n" for at in range(samples)))


def _pod_series(pods: int) -> Iterator[str]:
    counters = [family for family in (*ENGINE.values(), *USAGE.values()) if family.kind == "counter"]
    levels = ("kv_usage_ratio", "block_size_tokens", "up", "map_state", "info")
    logs = ("log_readable", "log_unread_bytes", "log_last_record_timestamp_seconds")
    prints = ("leading_fingerprints", "leading_fingerprint_requests")
    for pod in range(pods):
        common = f'model="m{pod % _MODELS}",job="prefix-cache-exporter",instance="pod-{pod}"'
        # A server has one template's release in force, and its predecessor's counters; a usage log has them all.
        own = [one for one in _RELEASES if one[0] == f"t{pod % _TEMPLATES}"]
        yield f"up{{{common}}}"
        for family in counters:
            yield from _expanded(family, family.series_name, own if family.plane == "engine" else _RELEASES, common)
        for part in ("sum", "count"):
            idle, ttft = ENGINE["block_idle_before_evict_seconds"], USAGE["time_to_first_token_seconds"]
            yield from _expanded(idle, f"{idle.name}_{part}", own, common)
            yield from _expanded(ttft, f"{ttft.name}_{part}", _RELEASES, common)
        for id_ in levels:
            yield from _expanded(ENGINE[id_], ENGINE[id_].series_name, own, common)
        for id_ in (*logs, *prints):
            yield from _expanded(USAGE[id_], USAGE[id_].series_name, _RELEASES, common)
        for id_ in ("release_info", "release_first_traffic_timestamp_seconds"):
            yield from _expanded(EXPORTER[id_], EXPORTER[id_].series_name, _RELEASES, common)


def _expanded(family: Family, name: str, releases: Sequence[tuple[str, str]], common: str) -> Iterator[str]:
    for labels in _combinations(family.labels, releases):
        yield f"{name}{{{labels}{',' if labels else ''}{common}}}"


def _combinations(names: Sequence[str], releases: Sequence[tuple[str, str]]) -> Iterator[str]:
    released = [f'template="{template}",template_revision="{revision}"' for template, revision in releases]
    sides = [released] if "template_revision" in names else []
    for name in names:
        if name not in {"model", "template", "template_revision"}:
            values = _VALUES.get(name, (_FIXED.get(name, "x"),))
            sides.append([f'{name}="{value}"' for value in values])
    for one in itertools.product(*sides):
        yield ",".join(one)


def _recorded_labels(names: Sequence[str]) -> Iterator[str]:
    models = [f'model="m{number}"' for number in range(_MODELS)] if "model" in names else [""]
    if "template" in names and "template_revision" not in names:
        models = [f'{model},template="t{number}"' for model in models for number in range(_TEMPLATES)]
    for model in models:
        for labels in _combinations(names, _RELEASES):
            yield ",".join(filter(None, (model, labels)))


class _Prometheus:
    """A Prometheus over these blocks that scrapes and evaluates nothing by itself."""

    def __init__(self, data: Path) -> None:
        self._port = free_port()
        self._url = f"http://127.0.0.1:{self._port}"
        config = data.parent / "prometheus.yml"
        config.write_text("{}\n")
        self._command = [
            shutil.which("prometheus") or "prometheus",
            f"--config.file={config}",
            f"--storage.tsdb.path={data}",
            "--storage.tsdb.retention.time=100y",
            f"--web.listen-address=127.0.0.1:{self._port}",
            "--log.level=error",
        ]

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._command)
        for _ in range(600):
            try:
                if requests.get(f"{self._url}/-/ready", timeout=1).ok:
                    return self
            except requests.RequestException:
                time.sleep(0.1)
        self.__exit__()
        raise TimeoutError("prometheus did not become ready")

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def evaluate(self, groups: Sequence[Group]) -> dict[str, int]:
        """Evaluates every group once; returns how many series each recorded name got."""
        largest_first = sorted(groups, key=lambda group: -len(group.rules))
        with ThreadPoolExecutor(CORES) as pool:
            return {name: count for part in pool.map(self._group, largest_first) for name, count in part.items()}

    def cpu(self, group: Group) -> float:
        """CPU seconds of one group's evaluation."""
        before = self._cpu()
        self._group(group)
        return self._cpu() - before

    def wall(self, groups: Sequence[Group]) -> float:
        """Seconds that one evaluation of all groups takes, as many at a time as there are cores."""
        began = time.perf_counter()
        self.evaluate(groups)
        return time.perf_counter() - began

    def _group(self, group: Group) -> dict[str, int]:
        counts: dict[str, int] = {}
        with requests.Session() as session:
            for rule in group.rules:
                asked = {"query": rule.expr, "time": _END}
                answer = session.post(f"{self._url}/api/v1/query", data=asked, timeout=60).json()
                if answer["status"] != "success":
                    raise RuntimeError(f"{rule.expr}: {answer.get('error')}")
                if isinstance(rule, Record):
                    counts[rule.series.name] = len(answer["data"]["result"])
        return counts

    def _cpu(self) -> float:
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
