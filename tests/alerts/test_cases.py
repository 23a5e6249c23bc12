"""What others ran into (public reports behind each case), with plain rules first and then with the shipped ones."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from support.promtool import ALERTS, read_yaml, run_tests

pytestmark = pytest.mark.prometheus
CASES = Path(__file__).parent / "cases"
REVISION = 'source="s",provider="p",model="m",template="t",template_revision="{}",pod="a"'
RATIO = "template_revision:prefix_cache_engine_cached_prompt_tokens_per_prompt_tokens:ratio_rate5m"
TOKENS = "template_revision:prefix_cache_engine_prompt_tokens:rate5m"


def plain(name):
    (outcome,) = run_tests([CASES / f"{name}.yml"])
    return outcome


def counter(name, values, revision="r1"):
    return {
        "series": f"prefix_cache_engine_{name}_total{{{REVISION.format(revision)}}}",
        "values": values,
    }


def labels(name, revision):
    inside = REVISION.format(revision).replace(',pod="a"', "").replace("source=", f'__name__="{name}",source=')
    return f"{{{inside}}}"


def unnamed(revision):
    return labels("x", revision).replace('__name__="x",', "")


def shipped(tmp_path, series, checks, files=("release-records", "engine-records")):
    """Runs expressions over the shipped recording rules."""
    test = {
        "rule_files": [str(ALERTS / f"{file}.rules.yaml") for file in files],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": series,
                "promql_expr_test": [
                    {
                        "expr": expr,
                        "eval_time": at,
                        "exp_samples": [{"labels": label, "value": value} for label, value in samples],
                    }
                    for expr, at, samples in checks
                ],
            }
        ],
    }
    path = tmp_path / "test.yaml"
    path.write_text(yaml.safe_dump(test, width=10**6))
    ((ok, output),) = run_tests([path])
    assert ok, output


def test_b41_the_first_tokens_of_a_revision_show_because_the_exporter_holds_zero(tmp_path):
    """https://github.com/prometheus/prometheus/issues/1673, https://github.com/grafana/tempo/pull/2068."""
    ok, output = plain("B41_test")
    assert ok, output
    shipped(
        tmp_path,
        [
            counter("prompt_tokens", "_x10 900x20", "naive"),
            counter("prompt_tokens", "_x9 0 900x20", "held"),
        ],
        [
            (
                f'{TOKENS}{{template_revision="naive"}} * 300',
                "12m",
                [(unnamed("naive"), 0)],
            ),
            # 900 real tokens, extrapolated by increase(): thresholds leave room, nothing compares for equality.
            (
                f'round({TOKENS}{{template_revision="held"}} * 300) >= bool 900',
                "12m",
                [(unnamed("held"), 1)],
            ),
        ],
    )


def test_b42_no_join_with_an_info_metric_fails_while_a_deploy_rolls():
    """https://github.com/prometheus-operator/prometheus-operator/issues/3270."""
    ok, output = plain("B42_test_naive")
    assert not ok
    assert "many-to-many matching not allowed" in output
    ok, output = plain("B42_test_good")
    assert ok, output
    for file in ALERTS.glob("*.rules.yaml"):
        for group in read_yaml(file)["groups"]:
            for rule in group["rules"]:
                # Info series are counted, never joined.
                assert "release_info" not in rule["expr"] or rule["expr"].startswith("count by")
                assert "engine_info" not in rule["expr"] or rule["expr"].startswith("count by")
    test = read_yaml(ALERTS / "tests/PrefixCacheCollapsedAfterRelease.yaml")["tests"]
    assert any("overlap on the same pods" in case["name"] for case in test)


def test_b43_neither_idle_nor_a_smoke_request_is_judged(tmp_path):
    """https://github.com/slok/sloth/issues/133, https://github.com/prometheus/prometheus/issues/597."""
    for name in ("B43_test_naive", "B43_test_good"):
        ok, output = plain(name)
        assert ok, output
    shipped(
        tmp_path,
        [
            counter("cached_prompt_tokens", "500x30", "idle"),
            counter("prompt_tokens", "900x30", "idle"),
            counter("cached_prompt_tokens", "0x30", "smoke"),
            counter("prompt_tokens", "0x24 40x5", "smoke"),
            counter("cached_prompt_tokens", "0+1000x30", "bad"),
            counter("prompt_tokens", "0+10000x30", "bad"),
        ],
        [
            (f"round({RATIO}_qualified, 0.001)", "28m", [(unnamed("bad"), 0.1)]),
            (f'{RATIO}{{template_revision="idle"}}', "28m", []),
        ],
    )


def test_b44_no_alert_fires_from_samples_that_have_ended():
    """https://github.com/prometheus/prometheus/issues/14500."""
    ok, output = plain("B44_test")
    assert ok, output
    for path in (ALERTS / "tests").glob("*.yaml"):
        for case in read_yaml(path)["tests"]:
            last = max(minutes(check["eval_time"]) for check in case["alert_rule_test"])
            for series in case["input_series"]:
                length = samples(series["values"])
                assert "stale" in series["values"] or length >= last, f"{path.stem}: {case['name']}: {series['series']}"


def test_b45_a_vanished_source_is_told_by_name():
    """https://github.com/kubernetes-sigs/kubernetes-mixin/issues/1112, https://github.com/cloudflare/pint/issues/706."""
    ok, output = plain("B45_test")
    assert ok, output
    rules = read_yaml(ALERTS / "exporter-alerts.rules.yaml")["groups"][0]["rules"]
    absent = {rule["labels"]["reason"]: rule["expr"] for rule in rules if rule["alert"] == "PrefixCacheExporterAbsent"}
    assert "unless source:" in absent["vanished"]
    assert (
        absent["none"] == 'absent_over_time(job:prefix_cache_exporter_targets:count{job="prefix-cache-exporter"}[3d])'
    )


@pytest.mark.parametrize(
    ("state", "series", "found"),
    [
        ("no series", [], []),
        ("idle", [counter("cached_prompt_tokens", "500x30"), counter("prompt_tokens", "900x30")], []),
        (
            "busy",
            [counter("cached_prompt_tokens", "0+40x30"), counter("prompt_tokens", "0+100x30")],
            [(labels(RATIO, "r1"), 0.4)],
        ),
        ("busy, never a hit", [counter("prompt_tokens", "0+100x30")], [(labels(RATIO, "r1"), 0)]),
    ],
)
def test_b57_absent_idle_and_busy_are_three_things(tmp_path, state, series, found):
    """https://github.com/prometheus/prometheus/issues/2662: never NaN, never a 0 that nobody counted."""
    shipped(tmp_path, series, [(RATIO, "25m", found), (f"{RATIO} != {RATIO}", "25m", [])])


def minutes(text):
    total, number = 0, ""
    for letter in text:
        if letter.isdigit():
            number += letter
        else:
            total, number = total + int(number) * {"d": 1440, "h": 60, "m": 1}[letter], ""
    return total


def samples(values):
    """How many intervals a promtool series covers."""
    count = 0
    for part in values.split():
        _, _, repeats = part.rpartition("x")
        count += (int(repeats) + (not part.startswith("_"))) if "x" in part else 1
    return count
