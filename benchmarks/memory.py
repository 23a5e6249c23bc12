"""Resident memory of the sidecar's parts over thousands of polls, in a process of their own.

That process is `polled.py`; this one serves it its pages.
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
        command = [sys.executable, "-m", "benchmarks.polled", url, str(polls), str(Path(folder) / "state.db")]
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=_ROOT)
    marks = json.loads(done.stdout)
    yield Figure("memory", "before the first poll", marks["0"], "MB")
    yield Figure("memory", f"after {polls // 10:,} polls", marks[str(polls // 10)], "MB")
    yield Figure("memory", f"after {polls:,} polls", marks[str(polls)], "MB", MOST)
    growth = marks[str(polls)] - marks[str(polls // 10)]
    yield Figure("memory", f"growth over the last {polls - polls // 10:,}", growth, "MB", FLAT)
