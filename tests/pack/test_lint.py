from __future__ import annotations

from dataclasses import replace

import pytest

from prefix_cache_exporter.pack.durations import Duration
from prefix_cache_exporter.pack.lint import expression_problems, files, known_series, lint
from prefix_cache_exporter.pack.model import Alert, Group, Record, Series
from prefix_cache_exporter.pack.settings import default_settings, read_settings

RATE = Series("model:prefix_cache_engine_prompt_tokens:rate5m", ("model",), "rate")
RATIO = Series("model:prefix_cache_engine_a_per_b:ratio_rate5m", ("model",), "ratio")
OTHER = Series("source:prefix_cache_engine_prompt_tokens:rate5m", ("source",), "rate")
KNOWN = known_series([RATE, RATIO, OTHER], ["cluster"])
COUNTER = "prefix_cache_engine_prompt_tokens_total"


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"namespaces": False, "labels": {"extra": ["cluster"]}, "selector": 'cluster="eu"'},
        {
            "interval": "1s",
            "windows": {"short": "10s", "long": "1m", "day": "5m"},
            "floors": {"baseline_time": "1m"},
        },
        {"job": 'a "job"', "selector": """cluster="a\\"b - (c",zone='x) > "y',"""},
        {"evidence_join": ["model", "template"], "budget": {"templates": {"support": 0.01, 'a "b"': 1}}},
    ],
)
def test_what_the_pack_generates_is_clean(settings):
    assert lint(read_settings(settings, "pack.yaml")) == []


@pytest.mark.parametrize(
    ("expr", "checks"),
    [
        (f"sum by (model) (rate({COUNTER}[5m])) / (sum by (model) (rate({COUNTER}[5m])) > 0)", []),
        (f'sum by (model, cluster) (rate({COUNTER}{{job=~"a|b"}}[5m]))', []),
        (f"count by (model) ({COUNTER})", []),
        ("time() - 5", []),
        (f"{RATE} / 300 > -1", []),
        (f"max_over_time({RATIO}[1h:1m])", []),
        (f"({RATE} > 1) * 0 + on (model) group_left () {RATIO}", []),
        ('absent(up{job="x"})', []),
        (f"group by (model) ({RATE})", []),
        ("sum by (", ["promql/syntax"]),
        ("vllm:prompt_tokens_total", ["promql/series", "rule/reject"]),
        (f"sum by (model) ({COUNTER})", ["promql/counter"]),
        (f"deriv({COUNTER}[5m])", ["promql/counter"]),
        ("rate(prefix_cache_engine_kv_usage_ratio[5m])", ["promql/rate"]),
        (f"sum by (model) (rate({COUNTER}[5m])) / sum by (model) (rate({COUNTER}[5m]))", ["promql/nan"]),
        (f"{RATE} / ({RATE} > bool 0)", ["promql/nan"]),
        (f"{RATE} / ({RATE} >= 0)", ["promql/nan"]),
        (f"{RATE} / ({RATE} < 5)", ["promql/nan"]),
        (f"{RATE} / 0", ["promql/nan"]),
        (f"avg by (model) ({RATIO})", ["ratio/mean"]),
        (f"avg_over_time({RATIO}[1h])", ["ratio/mean"]),
        ("sum by (source) (prefix_cache_engine_kv_usage_ratio)", ["ratio/sum"]),
        (f"{RATIO} + {RATIO}", ["ratio/sum"]),
        (f"({RATIO}) + {RATIO}", ["ratio/sum"]),
        (f"sum({RATE})", ["promql/aggregate"]),
        (f"sum without (model) ({RATE})", ["promql/aggregate"]),
        (f"sum by (namespace) ({RATE})", ["promql/impossible"]),
        (f'{RATE}{{pod="a"}}', ["promql/impossible"]),
        (f'{RATE}{{model=~"a"}}', ["promql/regexp"]),
        (f'{RATE}{{model=~"^a.*"}}', ["promql/regexp"]),
        (f"{RATE} - {OTHER}", ["promql/vector_matching"]),
        (f"{RATE} and on (source) {OTHER}", ["promql/vector_matching"]),
        (f"{RATE} * on () {OTHER}", ["promql/vector_matching"]),
    ],
)
def test_expressions(expr, checks):
    assert [problem.check for problem in expression_problems(expr, KNOWN)] == checks


GOOD = Alert(
    name="PrefixCacheThing",
    expr=f"{RATE} > 1",
    labels=("model",),
    severity="warning",
    hold=Duration.parse("5m"),
    summary="A thing.",
    description="Model {{ $labels.model }}.",
    dashboard="x",
)


def written(alert, **change):
    annotations = {
        "summary": alert.summary,
        "description": alert.description,
        "runbook_url": "r",
        "dashboard_url": "d",
    }
    return {"labels": {"severity": "warning", **alert.set_labels}, "annotations": annotations, **change}


@pytest.mark.parametrize(
    ("change", "checks"),
    [
        ({}, []),
        ({"name": "CacheThing"}, ["rule/name"]),
        ({"expr": f"{RATE}"}, ["alerts/comparison"]),
        ({"expr": f"{RATE} > bool 1"}, ["alerts/comparison"]),
        ({"expr": f"{RATE} unless {RATE}"}, []),
        ({"labels": ("model", "source")}, ["alerts/template"]),
        ({"hold": Duration.parse("1m")}, ["alerts/for"]),
        ({"summary": "A thing of {{ $labels.model }}."}, ["alerts/annotation"]),
        ({"description": "Source {{ $labels.source }}."}, ["alerts/template"]),
        ({"description": "{{ with printf `nothing{model=%q}` $labels.model | query }}{{ end }}"}, ["promql/series"]),
        ({"description": ""}, ["alerts/annotation"]),
        ({"set_labels": {"model": "m"}}, ["rule/label"]),
        ({"set_labels": {"share": "{{ $value }}"}}, ["alerts/template"]),
    ],
)
def test_alerts(change, checks):
    alert = replace(GOOD, **change)
    found = files._alert(alert, written(alert), KNOWN, Duration.parse("1m"))
    assert [problem.check for problem in found] == checks


def test_an_alert_without_severity_or_without_texts():
    assert [p.check for p in files._texts(GOOD, written(GOOD, labels={}), KNOWN)] == ["rule/label"]
    with pytest.raises(TypeError):
        list(files._texts(GOOD, {"labels": {}, "annotations": None}, KNOWN))


def test_records():
    def checks(series, expr):
        return [problem.check for problem in files._record(Record(series, expr), KNOWN)]

    assert checks(RATE, f"sum by (model) (rate({COUNTER}[5m]))") == []
    assert checks(replace(RATE, name="prompt_tokens"), f"sum by (model) (rate({COUNTER}[5m]))") == ["rule/name"]
    assert checks(replace(RATIO, name="model:prefix_cache_engine_hits:rate5m"), f"{RATIO}") == ["rule/name"]
    assert checks(RATE, f"sum by (source) (rate({COUNTER}[5m]))") == ["promql/aggregate"]
    assert checks(RATE, f"rate({COUNTER}[5m])") == ["promql/aggregate"]


def test_a_rule_that_stands_twice():
    record = Record(RATE, "x")
    twice = list(files._duplicates([Group("a", (record,)), Group("b", (record, GOOD, GOOD))]))
    assert [str(finding) for finding in twice] == [
        "model:prefix_cache_engine_prompt_tokens:rate5m: rule/duplicate: stands twice",
        "PrefixCacheThing: rule/duplicate: stands twice",
    ]


def test_a_selector_that_breaks_expressions_is_found():
    findings = lint(replace(default_settings(), selector='cluster="eu'))
    assert findings
    assert {finding.problem.check for finding in findings} >= {"promql/syntax"}
