from __future__ import annotations

import json

import pytest

from prefix_cache_exporter.cli import run


@pytest.fixture
def log(tmp_path):
    """Writes records, or lines as they are, as a log."""

    def write(lines, name="log.jsonl"):
        path = tmp_path / name
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        path.write_text("".join(f"{text}\n" for text in texts))
        return path

    return write


@pytest.fixture
def report(capsys):
    """Runs `report … --json` and gives its document, and what was said on standard error."""

    def call(*arguments, status=0):
        assert run(["report", *map(str, arguments), "--json"]) == status
        return json.loads(capsys.readouterr().out)

    return call
