"""Grafana's own components draw as many series as Prometheus has, and say "No traffic" where it has none."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from prefix_cache_exporter.pack.dashboards.lint.document import panels
from support import tsdb
from support.boards import NAMES, board, everything, filled

if TYPE_CHECKING:
    from .conftest import History

pytestmark = [pytest.mark.browser, pytest.mark.prometheus]
PREVIEW = Path(__file__).parents[2] / "dashboards" / "preview"
RELEASE = {"template": ["support"], "new_revision": ["r42"], "old_revision": ["r41"]}
WARM = 600


class Drawn(NamedTuple):
    """What the preview reports of one panel."""

    board: str
    panel: int
    kind: str
    series: int
    title: str
    said: str


def preview(history: History, out: Path, start: float, end: float, *more: str) -> tuple[int, list[Drawn], str]:
    subprocess.run([PREVIEW / "setup"], check=True, timeout=600)
    moments = [datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") for when in (start, end)]
    span = ["--from", moments[0], "--to", moments[1]]
    done = subprocess.run(
        [sys.executable, PREVIEW / "preview.py", "--prometheus", history.address, "--out", out, *span, *more],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    drawn = [Drawn(name, int(panel), kind, int(series), title, said) for name, panel, kind, series, title, said in rows]
    return done.returncode, drawn, done.stderr


@pytest.fixture(scope="module")
def busy(history: History, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int], Drawn]:
    out = tmp_path_factory.mktemp("pictures")
    code, drawn, errors = preview(history, out, history.start + WARM, history.busy)
    assert code == 0, errors
    assert {file.stem for file in out.glob("*.png")} == {*NAMES}
    return {(one.board, one.panel): one for one in drawn}


@pytest.mark.parametrize("name", NAMES)
def test_every_panel_draws_what_prometheus_has(history: History, busy: dict[tuple[str, int], Drawn], name: str) -> None:
    document = board(name)

    drawn = {panel["title"]: busy[name, panel["id"]].series for panel in panels(document)}

    assert drawn == {
        panel["title"]: expected(history, name, panel, drawn[panel["title"]]) for panel in panels(document)
    }


def expected(history: History, name: str, panel: Any, drawn: int) -> int:
    """Series of a panel's answers; rows of a table come out of joins, so any number of them will do."""
    if panel["type"] == "xychart":
        return len(panel["options"]["series"])
    if panel["type"] == "table":
        return max(drawn, 1)
    chosen = everything(board(name)) | (RELEASE if name == "release" else {})
    span: dict[str, Any] = {"start": history.start + WARM, "end": history.busy, "step": 120}
    found = 0
    for target in panel["targets"]:
        expr = filled(target["expr"], chosen, {"$__rate_interval": "240s", "$__range": "2h"})
        if target["instant"]:
            found += len(tsdb.at(history.address, expr, history.busy))
        else:
            found += len(tsdb.ask(history.address, "query_range", query=expr, **span)["result"])
    return found


def test_absent_fleet_is_no_traffic_in_every_panel(history: History, tmp_path: Path) -> None:
    """Neither a blank, nor NaN, nor an error."""
    _, drawn, errors = preview(history, tmp_path, history.absent, history.absent + 3600, *NAMES[2:])

    assert "show an error" not in errors
    assert {one.said for one in drawn if not one.series} == {"No traffic", "Nothing. Empty is good."}
    assert [one for one in drawn if one.series] == []


def test_variables_narrow_what_is_drawn(history: History, tmp_path: Path) -> None:
    """A model's name has slashes, dots and dashes, and the gateway has no engine."""
    span = (history.start + WARM, history.busy)
    chosen = ("--var", "source=gateway", "--var", "model=gpt-large", "--var", "template=support")

    _, drawn, errors = preview(history, tmp_path, *span, "overview", *chosen)

    titles = {one.title: one.series for one in drawn}
    assert "show an error" not in errors
    assert titles["Population hit ratio, engine plane (dashed: expected)"] == 0
    assert (
        titles["Population hit ratio, usage plane (dashed: expected)"] == 4
    )  # two revisions, each with what is expected
    assert titles["Revisions side by side"] == 2


def test_release_takes_all_templates_for_the_latest(history: History, tmp_path: Path) -> None:
    """Links from the other dashboards hand over what was chosen there, which may be All."""
    span = (history.start + WARM, history.busy)

    code, drawn, errors = preview(history, tmp_path, *span, "release", "--var", "template=$__all")

    assert code == 0, errors
    assert {one.series for one in drawn if one.kind == "xychart"} == {2}
