"""That the benchmarks run, at a setting too small to measure anything. What they measure is never a test."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


@pytest.mark.parametrize("name", ["poll", "answer", "start", "memory", "simulator", "usage_report"])
def test_a_benchmark_says_what_it_measured_and_what_was_promised(name):
    done = run(name, "--quick", "--json")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)["figures"]
    assert {figure["bench"] for figure in figures} == {name}
    assert any(figure["kept"] is not None for figure in figures)
    assert all(figure["value"] >= 0 or "growth" in figure["what"] for figure in figures)


def test_people_get_a_table():
    done = run("answer", "--quick")
    assert done.stdout.startswith("benchmark  what ")
    assert "<= 10 ms CPU" in done.stdout


def test_an_unknown_benchmark_is_a_mistake_of_usage():
    done = run("walk")
    assert done.returncode == 2
    assert "got walk, expected some of poll, answer, start, memory" in done.stderr
