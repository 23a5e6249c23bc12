"""`report` over a long usage log against duckdb's `read_json` with the same columns, and its memory.

Both run as a process of their own on one core, in turns, and are measured in CPU seconds from start to end, so that a
busy machine counts against neither; what is told is the median. Both run from compiled bytecode, as installed packages
do. duckdb reads the columns that `report` reads and does to a line what `report` does: repeats of an id count once,
totals are checked against their parts, and tokens, hits and money are summed by model, service tier and template
revision. Every line has an id and a tenant of its own: what must not grow with them, grows here if it does.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.figure import Figure
from benchmarks.resident import resident

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NO_SLOWER = 1.0
MOST = 128.0
"""MB, whatever the file's size."""
_LINES = 1_000_000
_BYTES = 543
_ROUNDS = 5
_LOOK_SECONDS = 0.01
_MODELS = ("gpt-4o-2024-08-06", "gpt-4o-mini", "gpt-6-sol", "gpt-5")
_PRICES = (
    "('gpt-4o-2024-08-06',2.5,1.25,10),('gpt-4o-mini',0.15,0.075,0.6),('gpt-6-sol',2,0.2,10),('gpt-5',1.25,0.125,10)"
)
_QUERY = f"""
WITH lines AS (SELECT DISTINCT ON (id) id, model, metadata.template_revision AS revision,
    usage.prompt_tokens AS input, usage.prompt_tokens_details.cached_tokens AS cached,
    usage.completion_tokens AS output, usage.total_tokens AS total, service_tier AS tier, created
  FROM read_json(?, format = 'newline_delimited'))
SELECT model, tier, revision, count(*), count(cached), count(*) FILTER (cached > 0),
  count(*) FILTER (total <> input + output OR cached > input),
  sum(input) FILTER (cached IS NOT NULL), sum(input) FILTER (cached IS NULL), sum(cached), sum(input - cached),
  sum(output), sum(cached * p.r), sum((input - cached) * p.i), sum(input * p.i), sum(output * p.o),
  min(created), max(created)
FROM lines LEFT JOIN (VALUES {_PRICES}) AS p(name, i, r, o) ON p.name = model GROUP BY ALL
"""  # made of constants
_CONFIG = """
usage:
- name: log
  format: openai.chat
  paths: [unused]
  fields: {tenant: $.metadata.tenant}
  namespaces: {buckets: 16, key_file: key}
"""
_DUCKDB = f"""
import duckdb, sys
connection = duckdb.connect(config={{"threads": 1}})
print(len(connection.execute({_QUERY!r}, [sys.argv[1]]).fetchall()))
"""


def figures(*, quick: bool) -> Iterator[Figure]:
    """Writes the log, then runs the two over it, and `report` again with a label for each tenant's bucket."""
    lines = 2_000 if quick else _LINES
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log = folder / "usage.jsonl"
        with log.open("wb") as file:
            file.writelines(map(line, range(lines)))
        (folder / "key").write_text("key")
        (folder / "config.yaml").write_text(_CONFIG)
        by = ["--field", "template_revision=$.metadata.template_revision", "--by", "model,template_revision", "--json"]
        report = [sys.executable, "-m", "prefix_cache_exporter", "report", str(log)]
        commands = {
            "report": [*report, "--format", "openai.chat", *by],
            "duckdb": [sys.executable, "-c", _DUCKDB, str(log)],
        }
        runs = [(name, *_run(commands[name], folder)) for name in [*commands] * (1 if quick else _ROUNDS + 1)]
        _, memory = _run([*report, "--config", str(folder / "config.yaml"), *by, "--by", "namespace"], folder)
    runs = runs if quick else runs[len(commands) :]  # the first compiled the bytecode and read the file from the disk
    ours, peer = (statistics.median(seconds for name, seconds, _ in runs if name == told) for told in commands)
    peer_memory = max(memory for name, _, memory in runs if name == "duckdb")
    per_line = 1e6 / lines
    yield Figure("usage_report", f"report, {lines:,} lines of {_BYTES} bytes", ours * per_line, "µs/line")
    yield Figure("usage_report", "duckdb read_json, the same columns", peer * per_line, "µs/line")
    yield Figure("usage_report", "report's time over duckdb's", ours / peer, "times", NO_SLOWER)
    yield Figure("usage_report", f"report's memory, {lines:,} ids and tenants", memory, "MB", MOST)
    yield Figure("usage_report", "duckdb's memory", peer_memory, "MB")


def line(number: int) -> bytes:
    """One line of a chat completion as gateways log them, always the same for a number."""
    prompt = 600 + number * 7919 % 8400
    cached = (0, 0, prompt // 2 // 128 * 128, prompt // 128 * 128)[number % 4]
    output = 1 + number * 31 % 900
    record = {
        "id": f"chatcmpl-{number:029d}",
        "object": "chat.completion",
        "created": 1793500000 + number // 50,
        "model": _MODELS[number // 3 % len(_MODELS)],
        "choices": [{"index": 0, "message": {"role": "assistant", "content": None}, "finish_reason": "stop"}],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": output,
            "total_tokens": prompt + output,
            "prompt_tokens_details": {"cached_tokens": cached},
        },
        "service_tier": "default",
        "metadata": {"template_revision": f"r{number % 3}", "tenant": f"tenant-{number:07d}"},
        "pad": "",
    }
    record["pad"] = "x" * (_BYTES - 1 - len(json.dumps(record, separators=(",", ":"))))
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def _run(command: Sequence[str], folder: Path) -> tuple[float, float]:
    """CPU seconds and the most resident memory in MB of a command that is kept to one core."""
    core = {min(os.sched_getaffinity(0))}
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
    ended, memory = 0, 0.0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment) as process:
        os.sched_setaffinity(process.pid, core)
        while not ended:
            time.sleep(_LOOK_SECONDS)
            memory = max(memory, resident(process.pid, peak=True))
            ended, status, used = os.wait4(process.pid, os.WNOHANG)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return used.ru_utime + used.ru_stime, memory
