"""Every query of every panel, variable and mark, asked of a real Prometheus whose fleet is busy, idle or gone."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from prefix_cache_exporter.pack.dashboards.lint.document import asked, marks, panels, query_text, variables
from support import tsdb
from support.boards import NAMES, board, everything, filled

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .conftest import History

pytestmark = pytest.mark.prometheus
WINDOWS = {"$__rate_interval": "240s", "$__range": "3h"}
RELEASE = {"template": ["support"], "new_revision": ["r42"], "old_revision": ["r41"]}
SOME = {
    "source": ["llama-a", "gateway"],
    "model": ["org/base-7b", "gpt-large"],
    "template": ["support", "sales"],
    "template_revision": ["r41", "r42"],
    "namespace": ["acme", "globex"],
}
CHOICES = [pytest.param({}, id="all"), pytest.param(SOME, id="some")]


class Asked(NamedTuple):
    """A query with its variables filled in, as a moment or a range, and whether a busy fleet must have an answer."""

    title: str
    expr: str
    instant: bool
    needed: bool


def asks(name: str, chosen: dict[str, list[str]]) -> Iterator[Asked]:
    """Every query of a dashboard's panels and marks."""
    document = board(name)
    values = (
        everything(document)
        | {key: one for key, one in chosen.items() if key in everything(document)}
        | (RELEASE if name == "release" else {})
    )
    for panel in panels(document):
        for target in panel["targets"]:
            title = f"{panel['id']} {panel['title']} {target['refId']}"
            needed = "Empty is good" not in panel["description"]
            yield Asked(title, filled(target["expr"], values, WINDOWS), target["instant"], needed)
    for mark in marks(document):
        yield Asked(mark["name"], filled(mark["expr"], values, WINDOWS), instant=False, needed=True)


@pytest.mark.parametrize("chosen", CHOICES)
@pytest.mark.parametrize("name", NAMES)
def test_busy_fleet_has_data_for_every_query(history: History, name: str, chosen: dict[str, list[str]]) -> None:
    def found(one: Asked) -> list[Any]:
        if one.instant:
            return tsdb.at(history.address, one.expr, history.busy)
        return over(history, one.expr, history.start, history.busy)

    assert [(one.title, one.expr) for one in asks(name, chosen) if one.needed and not found(one)] == []


@pytest.mark.parametrize("state", ["busy", "idle", "absent"])
@pytest.mark.parametrize("name", NAMES)
def test_no_state_gives_nan(history: History, name: str, state: str) -> None:
    when = getattr(history, state)

    answers = {one.title: tsdb.at(history.address, one.expr, when) for one in asks(name, {})}

    assert [title for title, found in answers.items() if any(unreal(series["value"]) for series in found)] == []


@pytest.mark.parametrize("name", NAMES)
def test_no_moment_from_the_first_sample_to_the_last_gives_nan(history: History, name: str) -> None:
    for one in asks(name, {}):
        found = over(history, one.expr, history.start - 600, history.absent)

        assert not [point for series in found for point in series["values"] if unreal(point)], one.title


@pytest.mark.parametrize("name", NAMES)
def test_absent_fleet_has_no_ratio(history: History, name: str) -> None:
    """Nothing is made up for what is not there: no 0, no 100 %. How long a release was cold is still remembered."""
    ratios = [one for one in asks(name, {}) if " / " in one.expr and "[7d:" not in one.expr]

    assert [one.title for one in ratios if tsdb.at(history.address, one.expr, history.absent)] == []


@pytest.mark.parametrize("name", NAMES)
def test_variables_list_values(history: History, name: str) -> None:
    document = board(name)
    values = everything(document) | (RELEASE if name == "release" else {})
    for variable in variables(document, "query"):
        expr = filled(asked(variable), values, WINDOWS)
        if query_text(variable).startswith("query_result"):
            found = lines(tsdb.at(history.address, expr, history.busy), variable["regex"])
        else:
            label = query_text(variable).rpartition(",")[2].strip(" )")
            span = {"start": history.start, "end": history.busy}
            found = tsdb.ask(history.address, f"label/{label}/values", **{"match[]": expr}, **span)

        assert {value for value in found if value} >= {*EXPECTED[variable["name"]]}, variable["name"]


EXPECTED = {
    "source": ["llama-a"],
    "model": ["org/base-7b"],
    "template": ["support", "sales"],
    "template_revision": ["r41", "r42", "r7"],
    "namespace": ["acme", "globex"],
    "new_revision": ["r42", "r41"],
    "old_revision": ["r41"],
}


def test_release_opens_on_the_latest_release(history: History) -> None:
    """The first value of a variable is what a fresh dashboard shows: the youngest revision, then the next."""
    document = board("release")
    chosen = everything(document)
    for variable in list(variables(document, "query"))[-3:]:
        result = tsdb.at(history.address, filled(asked(variable), chosen, WINDOWS), history.busy)
        chosen[variable["name"]] = lines(result, variable["regex"])[:1]

    assert chosen["template"] + chosen["new_revision"] + chosen["old_revision"] == ["support", "r42", "r41"]


def test_marks_stand_at_first_traffic_in_milliseconds(history: History) -> None:
    (mark,) = marks(board("overview"))
    expr = filled(mark["expr"], everything(board("overview")), WINDOWS)

    found = {
        one["metric"]["template_revision"]: float(one["value"][1])
        for one in tsdb.at(history.address, expr, history.busy)
    }

    assert mark["useValueForTime"]
    assert found["r41"] == history.start * 1000
    assert found["r42"] == (history.start + 80 * 60) * 1000


def test_a_ratio_tile_divides_what_stands_beside_it(history: History) -> None:
    tiles = [panel for panel in panels(board("overview")) if panel["type"] == "stat"]
    chosen = everything(board("overview"))
    for panel in tiles:
        ratio, top, bottom = (
            float(tsdb.at(history.address, filled(one["expr"], chosen, WINDOWS), history.busy)[0]["value"][1])
            for one in panel["targets"]
        )
        assert ratio == pytest.approx(top / bottom), panel["title"]


def lines(result: list[dict[str, Any]], regex: str) -> list[str]:
    """Values of `query_result` as Grafana takes them: each series as text, through the variable's pattern."""
    texts = ["{" + ",".join(f'{key}="{value}"' for key, value in one["metric"].items()) + "}" for one in result]
    found = [re.search(regex.strip("/"), text) for text in texts]
    return [one[1] for one in found if one]


def over(history: History, expr: str, start: float, end: float) -> list[dict[str, Any]]:
    """A range of five-minute steps."""
    found: list[dict[str, Any]] = tsdb.ask(history.address, "query_range", query=expr, start=start, end=end, step=300)[
        "result"
    ]
    return found


def unreal(point: tuple[float, str]) -> bool:
    return not math.isfinite(float(point[1]))


@pytest.mark.parametrize(("usage", "fleet"), [((0.4, 0.4), 0.4), ((0.2, 0.6), 0.5)])
def test_usage_of_two_pods_is_no_sum(tmp_path: Path, usage: tuple[float, float], fleet: float) -> None:
    """B58: two pods at 40 % are at 40 %; pods of two sizes count by what they hold."""
    (panel,) = [panel for panel in panels(board("engine")) if panel["title"] == "KV usage"]
    text = ""
    for family, values in (("kv_usage_ratio", usage), ("capacity_tokens", (1000, 3000))):
        name = f"prefix_cache_engine_{family}"
        rows = [
            f'{name}{{instance="{pod}",source="a",provider="vllm",model="m",engine="0"}} {value} {when}\n'
            for pod, value in zip("xy", values, strict=True)
            for when in (1000, 1060)
        ]
        text += f"# TYPE {name} gauge\n{''.join(rows)}"
    data = tmp_path / "data"
    tsdb.add_blocks(data, f"{text}# EOF\n")
    with tsdb.prometheus(data) as address:
        found = [
            tsdb.at(address, filled(one["expr"], everything(board("engine")), WINDOWS), 1060)
            for one in panel["targets"]
        ]

    assert [float(one["value"][1]) for (one,) in found] == [pytest.approx(max(usage)), pytest.approx(fleet)]
