"""Every dashboard passes every rule, and each rule finds what it is there for."""

from __future__ import annotations

import copy
import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from prefix_cache_exporter.pack.dashboards import lint
from prefix_cache_exporter.pack.dashboards.files import dashboard_files
from prefix_cache_exporter.pack.dashboards.lint import linter, provisioning
from prefix_cache_exporter.pack.dashboards.lint.document import panels, queries, variables
from prefix_cache_exporter.pack.settings import default_settings, read_settings
from support.boards import NAMES, board

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent
LINTER = {
    "template-datasource-rule",
    "template-job-rule",
    "template-instance-rule",
    "template-label-promql-rule",
    "template-on-time-change-reload-rule",
    "panel-datasource-rule",
    "panel-title-description-rule",
    "panel-units-rule",
    "panel-no-targets-rule",
    "target-logql-rule",
    "target-logql-auto-rule",
    "target-promql-rule",
    "target-rate-interval-rule",
    "target-job-rule",
    "target-instance-rule",
    "target-counter-agg-rule",
    "uneditable-dashboard",
}


@functools.cache
def shipped() -> Any:
    return lint.known(default_settings())


@pytest.mark.parametrize("name", NAMES)
def test_shipped_dashboards_pass(name: str) -> None:
    assert [*map(str, lint.lint(board(name), shipped()))] == []


@pytest.mark.parametrize(
    "changed",
    [
        {"windows": {"short": "10m", "long": "2h"}},
        {"selector": 'cluster="a"'},
        {"labels": {"extra": ["cluster"]}},
        {"namespaces": False},
    ],
)
def test_dashboards_of_other_pack_files_pass(changed: dict[str, Any]) -> None:
    settings = read_settings(changed, "pack.yaml")
    series = lint.known(settings)

    made = [json.loads(text) for text in dashboard_files(settings).values()]

    assert [str(finding) for one in made for finding in lint.lint(one, series)] == []


def test_every_rule_of_dashboard_linter_is_kept_or_excepted_with_a_reason() -> None:
    kept = {*lint.RULES, "target-counter-agg-rule"}

    assert {*linter.EXCEPTIONS} | (kept & LINTER) == LINTER
    assert all(linter.EXCEPTIONS.values())


def test_dashboard_that_was_exported_for_sharing() -> None:
    """B53: `__inputs`, an id, a chosen data source, a panel bound to another installation."""
    bad = json.loads((HERE / "B53_bad.json").read_text())

    assert [f"{where}: {text}" for where, text in provisioning.provisioning(bad)] == [
        ": __inputs: provisioning does not fill it in",
        ": id: belongs to one installation, expected null",
        "DS_PROMETHEUS: a data source of another installation is chosen",
        "panel 1 (): data source {'type': 'prometheus', 'uid': 'P5DCFC7561CCDE821'}, expected the variable",
    ]


def test_variable_of_several_values_with_an_equals_sign() -> None:
    """B55: `=` with a variable that Grafana escapes for patterns, and a label that other exporters have too."""
    bad = json.loads((HERE / "B55_bad.json").read_text())

    assert [text for _, text in provisioning.matching(bad)] == [
        'model_name="$model": a variable of several values needs =~',
        "label_values(model_name): names no metric of this exporter",
    ]


@pytest.mark.parametrize(("scrape", "step", "window"), [(60, 60, 240), (15, 60, 240), (60, 15, 60)])
def test_rate_interval_holds_two_scrapes(scrape: int, step: int, window: int) -> None:
    """B54: Grafana takes four times the query's own step; the data source's 15 s would be one scrape of a minute."""
    rendered = max(step + step, 4 * step)

    assert rendered == window
    assert (rendered >= 2 * scrape) == (step == 60)
    asked = [t for name in NAMES for panel in panels(board(name)) for t in panel["targets"]]
    assert {t["interval"] for t in asked if "$__rate_interval" in t["expr"]} == {"1m"}


def test_no_dashboard_reads_a_name_of_vllm_itself() -> None:
    """B58: the exporter keeps its own names stable."""
    assert [expr for name in NAMES for _, expr in queries(board(name)) if "vllm:" in expr] == []


def first(document: Any, kind: str) -> Any:
    return next(panel for panel in panels(document) if panel["type"] == kind)


def expr(text: str) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        first(document, "timeseries")["targets"][0]["expr"] = text

    return change


def variable(name: str, /, **changed: Any) -> Callable[[Any], None]:
    return lambda document: next(one for one in variables(document) if one["name"] == name).update(changed)


MISTAKES: list[tuple[Callable[[Any], Any], str]] = [
    (variable("datasource", label="Prometheus"), "template-datasource-rule"),
    (lambda d: d["templating"]["list"].append({"name": "second", "type": "datasource"}), "template-datasource-rule"),
    (lambda d: d["templating"]["list"].pop(0), "no variable for the data source"),
    (variable("model", query="label_values(prefix_cache_x{, model)"), "template-label-promql-rule"),
    (variable("model", query="metrics(prefix_cache_.*)"), "template-label-promql-rule"),
    (variable("model", refresh=1), "template-on-time-change-reload-rule"),
    (variable("model", multi=False, includeAll=False), "a single value in a pattern needs the format regex"),
    (variable("model", name="models"), "$model: used and not defined"),
    (lambda d: first(d, "stat").update(datasource={"type": "prometheus", "uid": "abc"}), "panel-datasource-rule"),
    (lambda d: first(d, "stat")["targets"][0].update(datasource={"type": "loki"}), "target-logql-rule"),
    (lambda d: first(d, "stat").update(title=""), "panel-title-description-rule"),
    (lambda d: first(d, "stat")["fieldConfig"]["defaults"].pop("unit"), "panel-units-rule"),
    (lambda d: first(d, "stat")["fieldConfig"]["defaults"].pop("noValue"), "no-traffic"),
    (lambda d: first(d, "stat").update(targets=[]), "panel-no-targets-rule"),
    (lambda d: first(d, "stat").update(description="A ratio."), "sides-described"),
    (lambda d: first(d, "stat").update(description="A ratio."), "names-described"),
    (lambda d: first(d, "stat")["gridPos"].update(x=20), "grid: panel 2"),
    (lambda d: first(d, "stat").update(id=3), "an id that another panel has"),
    (lambda d: d.update(editable=True), "uneditable-dashboard"),
    (lambda d: d.update(schemaVersion=16), "schema-version"),
    (lambda d: d.update(uid=None), "uid: expected a stable one"),
    (lambda d: d.update(links=[]), "no links to the other dashboards"),
    (lambda d: d["links"][0].update(keepTime=False), "loses the time range"),
    (expr("sum(rate(prefix_cache_engine_polls_total[5m])"), "target-promql-rule"),
    (expr("rate(prefix_cache_engine_polls_total[5m])"), "a rate over 5m"),
    (expr("rate(prefix_cache_engine_polls_total[$__rate_interval])"), "rate-interval-step"),
    (expr("sum(prefix_cache_engine_polls_total)"), "target-counter-agg-rule"),
    (expr("sum(prefix_cache_nobody_has)"), "promql/series"),
    (expr("sum(vllm:prompt_tokens_total)"), "rule/reject"),
    (expr("sum(prefix_cache_engine_kv_usage_ratio)"), "ratio/sum"),
    (expr("sum(prefix_cache_engine_up) / sum(prefix_cache_engine_up)"), "promql/nan"),
    (expr("sum by (source) (prefix_cache_engine_up)"), "source:prefix_cache_engine_up:sum says the same"),
    (
        expr("sum by (model) (rate(prefix_cache_engine_prompt_tokens_total[$__rate_interval]))"),
        "template_revision:prefix_cache_engine_prompt_tokens:rate5m says the same",
    ),
    (
        expr(
            "sum(template_revision:prefix_cache_engine_prompt_tokens:rate5m)"
            " + sum(template_revision:prefix_cache_usage_prompt_tokens:rate5m)"
        ),
        "planes-apart",
    ),
    (
        expr("histogram_quantile(0.9, sum by (le) (rate(prefix_cache_engine_queue_seconds_bucket[5m])))"),
        "quiet-quantiles",
    ),
    (expr("sum(prefix_cache_engine_up) or vector(0)"), "quiet-quantiles"),
]


@pytest.mark.parametrize(("change", "found"), MISTAKES, ids=[found for _, found in MISTAKES])
def test_a_mistake_is_found(change: Callable[[Any], Any], found: str) -> None:
    document = copy.deepcopy(board("overview"))
    change(document)

    findings = [*map(str, lint.lint(document, shipped()))]

    assert any(found in finding for finding in findings), findings


def test_panels_in_a_collapsed_row_are_read() -> None:
    row = {"type": "row", "panels": [{"id": 7, "type": "stat", "title": "", "description": "d"}]}

    assert [*linter.described({"panels": [row]})] == [("panel 7 ()", "no title")]
