"""Debian's Prometheus over made history: blocks from OpenMetrics text, recording rules filled in behind, queries."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def add_blocks(folder: Path, text: str) -> None:
    """Turns OpenMetrics text into blocks of a data folder."""
    source = folder.parent / "backfill.txt"
    source.write_text(text)
    command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", "--quiet", source, folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    source.unlink()


@contextlib.contextmanager
def prometheus(folder: Path) -> Iterator[str]:
    """The address of a Prometheus that serves a data folder and scrapes nothing."""
    config = folder.parent / "prometheus.yml"
    config.write_text("{}\n")
    port = free_port()
    command = [
        "prometheus",
        f"--config.file={config}",
        f"--storage.tsdb.path={folder}",
        "--storage.tsdb.retention.time=100y",
        f"--web.listen-address=127.0.0.1:{port}",
        "--query.lookback-delta=5m",
        "--log.level=error",
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(300):
            if process.poll() is not None:
                assert process.stderr is not None
                raise AssertionError(process.stderr.read())
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{address}/-/ready", timeout=5):
                break
            time.sleep(0.1)
        yield address
    finally:
        process.terminate()
        process.wait(30)
        assert process.stderr is not None
        process.stderr.close()


def ask(address: str, path: str, **parameters: str | float) -> Any:
    """Data of one answer of the HTTP API; an error is an assertion."""
    try:
        with urllib.request.urlopen(
            f"{address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}", timeout=60
        ) as answer:
            body = json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            body = json.load(error)
    assert body["status"] == "success", f"{body.get('error')}: {parameters}"
    return body["data"]


def at(address: str, expr: str, when: float) -> list[dict[str, Any]]:
    """An instant vector."""
    found: list[dict[str, Any]] = ask(address, "query", query=expr, time=when)["result"]
    return found


def fill_rules(folder: Path, files: Sequence[Path], start: float, end: float, step: int = 60) -> None:
    """Evaluates recording rules over a time that has passed, those that others read first, into new blocks."""
    rules = [rule for file in files for group in yaml.safe_load(file.read_text())["groups"] for rule in group["rules"]]
    records = {rule["record"]: rule["expr"] for rule in rules if "record" in rule}
    span = {"start": start, "end": end, "step": step}
    for level in _levels(records):
        with prometheus(folder) as address:
            text = "".join(_filled(address, name, records[name], span) for name in level)
        add_blocks(folder, text + "# EOF\n")


def _levels(records: dict[str, str]) -> Iterator[list[str]]:
    reads = {name: {word for word in _NAME.findall(expr) if word in records} for name, expr in records.items()}
    done: set[str] = set()
    while len(done) < len(records):
        ready = [name for name in records if name not in done and reads[name] - {name} <= done]
        assert ready, f"rules read each other in a circle: {records.keys() - done}"
        yield ready
        done.update(ready)


def _filled(address: str, name: str, expr: str, span: dict[str, float]) -> str:
    found = ask(address, "query_range", query=expr, **span)["result"]
    rows = [f"# TYPE {name} gauge\n"]
    for series in found:
        labels = {key: value for key, value in series["metric"].items() if key != "__name__"}
        text = ",".join(f"{key}={json.dumps(value)}" for key, value in labels.items())
        rows += [f"{name}{{{text}}} {value} {when}\n" for when, value in series["values"]]
    return "".join(rows)


def made(folder: Path, text: str, rules: Sequence[Path], start: float, end: float) -> Path:
    """A data folder with history and recorded series."""
    data = folder / "data"
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(parents=True)
    add_blocks(data, text)
    fill_rules(data, rules, start, end)
    return data
