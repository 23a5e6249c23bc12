"""Markers in every field of every format, and nothing that the process writes holds one of them.

Only where a map reads the model, provider, status or tier no marker stands: those are labels, meant to be seen.
"""

from __future__ import annotations

import json
import logging

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.exposition import generate_latest

from prefix_cache_exporter.collector import LedgerCollector
from prefix_cache_exporter.config.model import Namespaces
from support.usage_source import MAPS, Source

MARKER = "zq-marker"
FORMATS = [name for name in MAPS.formats if not MAPS.get(name).aggregate]


def skeleton(name: str) -> dict:
    """A record with a marker at every path that a format's map reads, and around it."""
    usage_map = MAPS.get(name)
    record: dict = {"user": MARKER, "prompt": MARKER, "metadata": {"tenant": MARKER, "api_key": MARKER}}
    root = usage_map.usage[0].steps if usage_map.usage else ()
    tokens = [path for paths in usage_map.tokens.values() for path in paths[:1]]
    plant(record, (*root, "text"), MARKER)
    plant(record, (*root, MARKER), {MARKER: 5})
    plant(record, (*root, f"{MARKER} of a key"), 5)
    for path in tokens:
        plant(record, path.steps if path.absolute else (*root, *path.steps), 7)
    for path in (*usage_map.id, *usage_map.time):
        plant(record, path.steps if path.absolute else (*root, *path.steps), MARKER)
    return record


def plant(record: dict, steps: tuple, value: object) -> None:
    for step in steps[:-1]:
        if not isinstance(record, dict) or not isinstance(step, str):
            return
        record = record.setdefault(step, {})
    if isinstance(record, dict) and isinstance(steps[-1], str):
        record[steps[-1]] = value


def lines(name: str) -> list[str]:
    record = skeleton(name)
    text = json.dumps(record)
    return [
        text,
        text,
        json.dumps({**record, "stream": True, "type": MARKER}),
        json.dumps(record).replace(": 7", f': "{MARKER}"'),  # text where numbers should be
        json.dumps(record).replace(": 7", ": -7"),
        f"{MARKER} is no JSON",
        json.dumps([MARKER]),
        '{"half": "' + MARKER,
        f'{{"{MARKER}": ' + "[" * 5000,
    ]


def written(source: Source, log: str) -> dict[str, str]:
    """Everything that the process wrote: files, page, log lines."""
    registry = CollectorRegistry()
    registry.register(LedgerCollector(source.recorder))
    found = {"page": generate_latest(registry).decode(), "log": log}
    for path in source.folder.iterdir():
        if path.is_file() and not path.name.startswith("app.log"):
            found[path.name] = path.read_bytes().decode("latin-1")
    return found


@pytest.mark.parametrize("name", FORMATS)
def test_no_marker_gets_out(tmp_path, name, caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("prefix_cache_exporter"), "propagate", True)
    caplog.set_level(logging.DEBUG)
    fields = {"tenant": "$.metadata.tenant", "leading_fingerprint": "$.prompt", "eligible_tokens": "$.user"}
    source = Source(
        tmp_path,
        format=name,
        fields=fields,
        namespaces=Namespaces(buckets=4),
        quarantine_file=tmp_path / "quarantine.jsonl",
        paths=(str(tmp_path / "app.log*"),),
        line_limit_bytes=4096,
    )
    source.append("\n".join(lines(name)) + "\n")
    source.poll()
    source.kill()  # while records are merging
    (tmp_path / f"app.log.{MARKER}").write_text(f'{{"x": "{MARKER}"}}\n{MARKER * 1000}\n')
    source.poll()
    source.poll(1000)
    source.kill()
    source.poll()
    assert source.total("lines") >= len(lines(name))
    for place, text in written(source, caplog.text).items():
        assert MARKER not in text, place


def test_a_state_file_with_its_write_ahead_log_is_looked_into(tmp_path):
    """The test above would be worth nothing if the state were somewhere else."""
    source = Source(tmp_path, "\n".join(lines("openai.chat")) + "\n")
    source.poll()
    assert {"state.db", "state.db-wal", "state.db-shm", "page", "log"} <= set(written(source, ""))
    assert "prefix_cache_usage_lines" in written(source, "")["state.db-wal"]
    assert "prefix_cache_usage_lines_total" in written(source, "")["page"]
