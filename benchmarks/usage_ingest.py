"""`serve`'s ingest path over a usage log, beside mtail counting the same fields and a bare msgspec loop.

All read the same file of 543-byte lines in one run, in turn, and come to the same sums by model and template revision.
Ours does all that the sidecar does with a line: read, decode, normalise, tell repeats, attribute, price, add to the
ledger, and commit to a state file. CPU time of each; the best of several rounds, since other load can only add to it.
"""

from __future__ import annotations

import json
import logging
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from benchmarks.figure import Figure
from benchmarks.resident import resident
from prefix_cache_exporter.config.model import Namespaces, UsageSource
from prefix_cache_exporter.labels import Limits
from prefix_cache_exporter.recorder import Recorder
from prefix_cache_exporter.release import Release
from prefix_cache_exporter.state import Store
from prefix_cache_exporter.usage.maps.book import MapBook
from prefix_cache_exporter.usage.prices.book import PriceBook
from prefix_cache_exporter.usage.sources import build_ingest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

LINE_BYTES = 543
BARE_SHARE = 0.5
"""Lines per CPU second, of a bare decode-and-sum loop's."""
MTAIL_TIMES = 5
MEMORY_MB = 128
TENANTS = 1_000_000
_LINES = 200_000
_ROUNDS = 5
_FIELDS = {"template": "$.metadata.template", "template_revision": "$.metadata.template_revision"}
_MTAIL = r"""
counter requests by model, template_revision
counter prompt_tokens by model, template_revision
counter output_tokens by model, template_revision
counter cached_tokens by model, template_revision
/"model": "(?P<model>[^"]+)".*"prompt_tokens": (?P<prompt>\d+), "completion_tokens": (?P<output>\d+)/ {
  /"cached_tokens": (?P<cached>\d+).*"template_revision": "(?P<template_revision>[^"]+)"/ {
    requests[$model][$template_revision]++
    prompt_tokens[$model][$template_revision] += $prompt
    output_tokens[$model][$template_revision] += $output
    cached_tokens[$model][$template_revision] += $cached
  }
}
"""


def line(number: int, rng: random.Random) -> bytes:
    """One response of a gateway's log, padded with text that nobody reads."""
    prompt, output = rng.randint(600, 9000), rng.randint(1, 900)
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": prompt + output,
        "prompt_tokens_details": {"cached_tokens": rng.choice((0, prompt // 256 * 128, prompt // 128 * 128))},
    }
    row = {
        "id": f"chatcmpl-{rng.getrandbits(64):016x}{number:08x}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": rng.choice(("gpt-4o", "gpt-4o-mini")),
        "usage": usage,
        "service_tier": "default",
        "metadata": {"template": "support", "template_revision": rng.choice(("r1", "r2")), "tenant": f"t-{number:07d}"},
        "note": "",
    }
    row["note"] = "x" * (LINE_BYTES - 1 - len(json.dumps(row)))
    return json.dumps(row).encode() + b"\n"


def write(path: Path, lines: int) -> None:
    """Writes a log."""
    rng = random.Random(7)
    with path.open("wb") as file:
        for number in range(lines):
            file.write(line(number, rng))


class _Details(msgspec.Struct, gc=False):
    cached_tokens: int


class _Usage(msgspec.Struct, gc=False):
    prompt_tokens: int
    completion_tokens: int
    prompt_tokens_details: _Details


class _Metadata(msgspec.Struct, gc=False):
    template: str
    template_revision: str


class _Row(msgspec.Struct, gc=False):
    id: str
    created: int
    model: str
    usage: _Usage
    metadata: _Metadata


def bare(path: Path) -> dict[tuple[str, str, str], list[int]]:
    """Decodes the fields that are counted and adds them up by label set; nothing else."""
    decode = msgspec.json.Decoder(_Row).decode
    sums: dict[tuple[str, str, str], list[int]] = {}
    with path.open("rb") as file:
        for text in file:
            row = decode(text)
            usage, metadata = row.usage, row.metadata
            key = (row.model, metadata.template, metadata.template_revision)
            one = sums.get(key)
            if one is None:
                one = sums[key] = [0, 0, 0, 0]
            one[0] += 1
            one[1] += usage.prompt_tokens
            one[2] += usage.completion_tokens
            one[3] += usage.prompt_tokens_details.cached_tokens
    return sums


def barest(path: Path) -> int:
    """The same without labels: three sums over everything."""
    decode = msgspec.json.Decoder(_Row).decode
    prompt = output = cached = 0
    with path.open("rb") as file:
        for text in file:
            usage = decode(text).usage
            prompt += usage.prompt_tokens
            output += usage.completion_tokens
            cached += usage.prompt_tokens_details.cached_tokens
    return prompt + output + cached


def ingest(path: Path, state: Path, fields: Mapping[str, str] = _FIELDS, namespaces: Namespaces | None = None) -> float:
    """Reads a whole log as `serve` does; returns CPU seconds without those of the start."""
    source = UsageSource(
        name="gateway",
        format="openai.chat",
        paths=(str(path),),
        fields=fields,
        namespaces=namespaces or Namespaces(),
    )
    recorder = Recorder(Store(state), Limits())
    prices = PriceBook()
    prices.rates("openai", "gpt-4o")  # price books are read once, at the first record
    worker = build_ingest(
        source,
        usage_map=MapBook().get(source.format),
        key=b"benchmark",
        recorder=recorder,
        release=lambda: Release(template="support"),
        prices=prices,
    )
    began = time.process_time()
    while worker.step(draining=False) == 0.0:
        recorder.commit()
    recorder.commit()
    seconds = time.process_time() - began
    worker.close()
    recorder.close()
    return seconds


def mtail(path: Path, program: Path) -> float:
    """CPU seconds of mtail over the log."""
    program.write_text(_MTAIL)
    command = ["mtail", "--one_shot", "--one_shot_format=json", "--progs", str(program), "--logs", str(path)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def figures(*, quick: bool) -> Iterator[Figure]:
    """Speed beside the peers, and memory with a million tenants and ids."""
    logging.getLogger("prefix_cache_exporter").setLevel(logging.ERROR)
    lines, rounds = (2_000, 1) if quick else (_LINES, _ROUNDS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "usage.jsonl"
        write(path, lines)
        speeds: dict[str, list[float]] = {"ingest": [], "bare loop": [], "bare loop, no labels": [], "mtail": []}
        for number in range(rounds):
            speeds["bare loop"].append(_cpu(lambda: bare(path)))
            speeds["bare loop, no labels"].append(_cpu(lambda: barest(path)))
            speeds["ingest"].append(ingest(path, Path(folder) / f"{number}.db"))
            if shutil.which("mtail") and number < 2:
                speeds["mtail"].append(mtail(path, Path(folder) / "usage.mtail"))
        best = {name: lines / min(seconds) for name, seconds in speeds.items() if seconds}
        for name, speed in best.items():
            yield Figure("usage_ingest", name, speed, "lines/CPU s")
        yield Figure(
            "usage_ingest", "ingest / bare loop", best["ingest"] / best["bare loop"], "times", BARE_SHARE, at_least=True
        )
        if "mtail" in best:
            yield Figure(
                "usage_ingest", "ingest / mtail", best["ingest"] / best["mtail"], "times", MTAIL_TIMES, at_least=True
            )
        yield Figure(
            "usage_ingest", f"memory, {TENANTS:,} tenants and ids", _memory(Path(folder), quick=quick), "MB", MEMORY_MB
        )


def _memory(folder: Path, *, quick: bool) -> float:
    path = folder / "tenants.jsonl"
    write(path, 2_000 if quick else TENANTS)
    code = "import sys; from benchmarks.usage_ingest import peak; print(peak(*sys.argv[1:]))"
    command = [sys.executable, "-c", code, str(path), str(folder / "tenants.db")]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def peak(path: str, state: str) -> float:
    """Peak resident megabytes of a process that reads a log with a tenant per line."""
    fields = {**_FIELDS, "tenant": "$.metadata.tenant"}
    ingest(Path(path), Path(state), fields=fields, namespaces=Namespaces(buckets=16))
    return resident(peak=True)


def _cpu(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began
