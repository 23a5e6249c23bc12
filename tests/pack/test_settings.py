from __future__ import annotations

import pytest

from prefix_cache_exporter.documents import DocumentError, read_schema
from prefix_cache_exporter.pack.durations import Duration
from prefix_cache_exporter.pack.settings import default_settings, load_settings, read_settings

MATCHERS = 'label matchers like cluster="eu", without braces'
BROUGHT = "a label that targets bring along, not one of the exporter's or of an alert's own"
SET = "a label that no alert has of its own"
ADDRESS = "an address without spaces or braces"


def test_every_value_has_a_default_and_a_sentence():
    def look(schema, path):
        for key, part in schema["properties"].items():
            assert "default" in part, (*path, key)
            assert part["description"].endswith((".", ";")), (*path, key)
            if "properties" in part:
                look(part, (*path, key))

    look(read_schema("pack"), ())
    assert default_settings().windows.short == Duration.parse("5m")
    assert default_settings().floors.prompt_tokens == 10000


def test_a_file_changes_what_it_names(tmp_path):
    path = tmp_path / "pack.yaml"
    path.write_text("windows: {short: 10m}\nalerts: {PrefixCacheCoverageLow: {for: 2h, severity: info}}\n")
    settings = load_settings(path)
    assert (str(settings.windows.short), str(settings.windows.long)) == ("10m", "1h")
    change = settings.alerts["PrefixCacheCoverageLow"]
    assert (str(change.for_), change.severity, change.enabled) == ("2h", "info", True)


def test_an_empty_file_is_the_defaults(tmp_path):
    path = tmp_path / "pack.yaml"
    path.write_text("# nothing yet\n")
    assert load_settings(path) == default_settings()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"interval": "0s"}, 'interval: got "0s", expected a duration above zero, like 30m or 1h30m'),
        ({"windows": {"short": "2h"}}, 'windows.long: got "1h", expected more than windows.short (2h)'),
        ({"interval": "10m"}, 'windows.short: got "5m", expected more than interval (10m)'),
        ({"release": {"memory": "1d"}}, 'release.memory: got "1d", expected more than windows.day (1d)'),
        ({"release": {"cold_window": "8d"}}, 'release.memory: got "7d", expected more than release.cold_window (8d)'),
        ({"release": {"cold_window": "10s"}}, 'release.cold_window: got "10s", expected at least interval (1m)'),
        ({"release": {"window": "8d"}}, 'release.memory: got "7d", expected at least release.window (8d)'),
        ({"release": {"rollout": "8d"}}, 'release.memory: got "7d", expected at least release.rollout (8d)'),
        ({"release": {"memory": "9999w"}}, 'release.memory: got "69993d", expected at most 3650d'),
        ({"floors": {"baseline_time": "2d"}}, 'windows.day: got "1d", expected at least floors.baseline_time (2d)'),
        ({"floors": {"records": float("nan")}}, "floors.records: got NaN, expected a finite number"),
        ({"floors": {"records": float("inf")}}, "floors.records: got Infinity, expected a finite number"),
        ({"thresholds": {"warm": 0.4}}, "thresholds.warm: got 0.4, expected at least thresholds.collapsed (0.5)"),
        (
            {"alerts": {"PrefixCacheCoverageLow": {"keep_firing_for": "9999w"}}},
            'alerts.PrefixCacheCoverageLow.keep_firing_for: got "69993d", expected at most 3650d',
        ),
        ({"selector": "cluster=eu"}, f'selector: got "cluster=eu", expected {MATCHERS}'),
        ({"selector": '{cluster="eu"}'}, f'selector: got "{{cluster=\\"eu\\"}}", expected {MATCHERS}'),
        (
            {"selector": 'cluster=~"["'},
            'selector: got "cluster=~\\"[\\"", expected what Prometheus can read (illegal regex for [)',
        ),
        (
            {"trust": {"weak_hash": "(["}},
            'trust.weak_hash: got "([", expected what Prometheus can read (illegal regex for ([)',
        ),
        ({"labels": {"extra": ["pod", "template"]}}, f'labels.extra[1]: got "template", expected {BROUGHT}'),
        ({"labels": {"extra": ["__name__"]}}, f'labels.extra[0]: got "__name__", expected {BROUGHT}'),
        ({"labels": {"extra": ["severity"]}}, f'labels.extra[0]: got "severity", expected {BROUGHT}'),
        ({"labels": {"alerts": {"severity": "page"}}}, f'labels.alerts.severity: got "severity", expected {SET}'),
        ({"labels": {"alerts": {"source": "x"}}}, f'labels.alerts.source: got "source", expected {SET}'),
        (
            {"labels": {"extra": ["cluster"], "alerts": {"cluster": "eu"}}},
            f'labels.alerts.cluster: got "cluster", expected {SET}',
        ),
        (
            {"labels": {"alerts": {"team": "{{ x"}}},
            'labels.alerts.team: got "{{ x", expected text without {{: a label\'s value is the same on every alert',
        ),
        ({"budget": {"templates": {"{{": 1}}}, 'budget.templates: got "{{", expected a template\'s name without {{'),
        ({"links": {"runbooks": "our wiki"}}, f'links.runbooks: got "our wiki", expected {ADDRESS}'),
        ({"links": {"grafana": "https://g/{{"}}, f'links.grafana: got "https://g/{{{{", expected {ADDRESS}'),
        ({"budget": {"currency": "usd"}}, 'budget.currency: got "usd", expected text matching ^[A-Z]{3}$'),
        ({"thresholds": {"warm": 2}}, "thresholds.warm: got 2, expected at most 1"),
    ],
)
def test_mistakes(data, message):
    with pytest.raises(DocumentError, match=r"pack\.yaml") as caught:
        read_settings(data, "pack.yaml")
    assert str(caught.value) == f"pack.yaml: {message}"


def test_an_unknown_alert_is_told_with_the_other_mistakes():
    data = {"interval": "0s", "alerts": {"PrefixCacheCollapsed": {}}, "floors": {"records": float("nan")}}
    with pytest.raises(DocumentError) as caught:
        read_settings(data, "pack.yaml")
    first, second, third = str(caught.value).splitlines()
    assert first.startswith("pack.yaml: interval: got")
    assert second.startswith('pack.yaml: alerts: got "PrefixCacheCollapsed", expected one of "PrefixCache')
    assert third == "pack.yaml: floors.records: got NaN, expected a finite number"


@pytest.mark.parametrize(
    "selector",
    ['cluster="eu"', """ a = "x" , b!~'y|z',""", "a=~`x{2}`", r'a="\"}"', ""],
)
def test_matchers_as_prometheus_reads_them(selector):
    assert read_settings({"selector": selector}, "pack.yaml").selector == selector


@pytest.mark.parametrize(
    ("text", "milliseconds", "shown"),
    [
        ("5m", 300_000, "5m"),
        ("1h30m", 5_400_000, "1h30m"),
        ("90m", 5_400_000, "1h30m"),
        ("1w", 604_800_000, "7d"),
        ("3570s", 3_570_000, "59m30s"),
        ("500ms", 500, "500ms"),
    ],
)
def test_durations(text, milliseconds, shown):
    duration = Duration.parse(text)
    assert (duration.milliseconds, str(duration)) == (milliseconds, shown)
    assert duration == Duration(milliseconds)
    assert duration != milliseconds


@pytest.mark.parametrize("text", ["", "0s", "5", "m", "5m5", "1x"])
def test_no_durations(text):
    with pytest.raises(ValueError, match="expected a duration above zero"):
        Duration.parse(text)


def test_arithmetic_of_durations():
    assert Duration.parse("1h").per(Duration.parse("1m")) == 60
    assert Duration.parse("1s").per(Duration.parse("1m")) == 1
    assert len({Duration.parse("60s"), Duration.parse("1m")}) == 1
    assert Duration.parse("1m") < Duration.parse("2m")
    assert Duration.parse("1m").seconds == 60
