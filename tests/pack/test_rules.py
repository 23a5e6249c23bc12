from __future__ import annotations

import subprocess

import pytest
import yaml

from prefix_cache_exporter.documents import read_schema
from prefix_cache_exporter.measures import RATIOS
from prefix_cache_exporter.pack import producers, writer
from prefix_cache_exporter.pack.durations import Duration
from prefix_cache_exporter.pack.mistakes import ALERTING
from prefix_cache_exporter.pack.model import Record
from prefix_cache_exporter.pack.names import ratio_measure, ratio_named
from prefix_cache_exporter.pack.rules import rule_files, rule_groups
from prefix_cache_exporter.pack.settings import default_settings, read_settings
from support.promtool import ALERTS, PROMTOOL, ROOT


def rules(settings, kind):
    for text in rule_files(read_settings(settings, "pack.yaml")).values():
        for group in yaml.safe_load(text)["groups"]:
            yield from (rule for rule in group["rules"] if kind in rule)


def test_what_is_committed_is_what_is_generated():
    assert writer.drift(writer.outputs(producers.PRODUCERS, default_settings(), ROOT)) == ""


def test_the_same_settings_give_the_same_bytes():
    assert rule_files(default_settings()) == rule_files(default_settings())


def test_a_ratio_states_both_sides():
    assert ratio_measure(ratio_named("engine_population_hit")) == (
        "prefix_cache_engine_cached_prompt_tokens_per_prompt_tokens"
    )
    assert ratio_measure(ratio_named("usage_request_coverage")) == (
        "prefix_cache_usage_reported_requests_per_reported_requests_plus_unreported_requests"
    )


def test_every_ratio_is_recorded_over_three_windows():
    recorded = {rule["record"] for rule in rules({}, "record")}
    for ratio in RATIOS:
        for window in ("5m", "1h", "1d"):
            assert any(name.endswith(f":{ratio_measure(ratio)}:ratio_rate{window}") for name in recorded), ratio.id


def test_no_rule_reads_pods_twice_or_keeps_a_pod():
    series = [
        rule.series
        for file in rule_groups(default_settings()).values()
        for group in file
        for rule in group.rules
        if isinstance(rule, Record)
    ]
    assert len({one.name for one in series}) == len(series)
    assert not {"pod", "instance", "engine"} & {label for one in series for label in one.labels}


def test_only_syntax_that_prometheus_2_42_reads():
    for file in ALERTS.glob("*.rules.yaml"):
        for group in yaml.safe_load(file.read_text())["groups"]:
            assert set(group) == {"name", "interval", "rules"}


def test_settings_reach_every_selector():
    for rule in rules({"selector": 'cluster="eu"', "labels": {"extra": ["cluster"]}}, "record"):
        if "prefix_cache_" in rule["expr"].replace(":prefix_cache_", ""):
            assert 'cluster="eu"' in rule["expr"]
            assert "cluster" in rule["expr"].split(") (")[0]


def test_namespaces_only_where_asked():
    assert any(rule["record"].startswith("namespace:") for rule in rules({}, "record"))
    without = list(rules({"namespaces": False}, "record"))
    assert not any(rule["record"].startswith("namespace:") for rule in without)


def test_alerts_are_changed_one_by_one():
    changed = list(
        rules(
            {
                "alerts": {
                    "PrefixCacheCoverageLow": {"for": "2h", "keep_firing_for": "1h", "severity": "info"},
                    "PrefixCacheDeadBelowBlockSize": {"enabled": False},
                },
                "labels": {"alerts": {"team": "serving"}},
                "links": {"runbooks": "https://runbooks.example/", "grafana": "https://grafana.example/"},
            },
            "alert",
        )
    )
    assert "PrefixCacheDeadBelowBlockSize" not in {rule["alert"] for rule in changed}
    coverage = next(rule for rule in changed if rule["alert"] == "PrefixCacheCoverageLow")
    assert (coverage["for"], coverage["keep_firing_for"]) == ("2h", "1h")
    assert coverage["labels"] == {"severity": "info", "plane": "engine", "team": "serving"}
    assert coverage["annotations"]["runbook_url"] == "https://runbooks.example/PrefixCacheCoverageLow.md"
    assert coverage["annotations"]["dashboard_url"].startswith("https://grafana.example/d/prefix-cache-engine?")


def test_a_file_without_any_alert_left_is_not_written():
    off = {
        name: {"enabled": False}
        for name in ("PrefixCacheUsageLogStalled", "PrefixCacheRecordsQuarantined", "PrefixCacheExporterAbsent")
    }
    assert "exporter-alerts.rules.yaml" not in rule_files(read_settings({"alerts": off}, "pack.yaml"))


def test_the_schema_knows_every_alert():
    known = {rule["alert"] for rule in rules({}, "alert")}
    assert set(read_schema("pack")["properties"]["alerts"]["propertyNames"]["enum"]) == known


def test_no_alert_sets_a_label_that_a_pack_file_may_set():
    for rule in rules({"budget": {"templates": {"support": 0.01}}}, "alert"):
        assert set(rule["labels"]) <= ALERTING


def test_a_target_label_that_a_level_has_already_is_kept_once():
    (targets,) = (
        rule
        for rule in rules({"labels": {"extra": ["job"]}}, "record")
        if rule["record"].startswith("job:") and rule["record"].endswith("targets:count")
    )
    assert targets["expr"] == 'count by (job) (up{job="prefix-cache-exporter"})'


@pytest.mark.parametrize(
    ("interval", "expr"),
    [
        ("1m", "[59m30s]) / 60"),
        ("7m", "[52m30s]) / 8"),  # 8 samples: at 0, 7, … 49 minutes; nine would be divided by eight
        ("4m", "[58m]) / 15"),
    ],
)
def test_a_mean_divides_by_as_many_samples_as_its_range_holds(interval, expr):
    settings = {"interval": interval, "windows": {"short": "10m"}}
    (lines,) = (
        rule["expr"] for rule in rules(settings, "record") if rule["record"] == "source:prefix_cache_usage_lines:rate1h"
    )
    assert lines == f"sum_over_time(source:prefix_cache_usage_lines:rate10m{expr}"


def test_budgets_of_single_templates():
    budgets = [
        rule["expr"]
        for rule in rules({"budget": {"templates": {"support": 0.01}}}, "alert")
        if rule["alert"] == "PrefixCacheInputCostOverBudget"
    ]
    assert ['template!="support"' in budgets[0], "> 0.05" in budgets[0]] == [True, True]
    assert ['template="support"' in budgets[1], "> 0.01" in budgets[1]] == [True, True]


@pytest.mark.prometheus
def test_promtool_finds_no_alert_twice(tmp_path):
    """Two budgets are two alerts of one name; a label says whose is exceeded."""
    files = rule_files(read_settings({"budget": {"templates": {"support": 0.01, 'a "b"': 1}}}, "pack.yaml"))
    path = tmp_path / "usage-alerts.rules.yaml"
    path.write_text(files[path.name])
    command = [PROMTOOL, "check", "rules", "--lint=all", "--lint-fatal", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_alert_on_a_short_window_is_quicker_than_the_window():
    """The tail of a draining revision, a handful of requests, is judged for no longer than it is in the window."""
    for short in ("5m", "20m"):
        for rule in rules({"windows": {"short": short}}, "alert"):
            assert Duration.parse(rule["for"]) > Duration.parse(short), rule["alert"]
