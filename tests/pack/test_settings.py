from __future__ import annotations

import pytest

from prefix_cache_exporter.documents import DocumentError, read_schema
from prefix_cache_exporter.pack.durations import Duration
from prefix_cache_exporter.pack.settings import default_settings, load_settings, read_settings


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
        ({"release": {"memory": "1h"}}, 'release.memory: got "1h", expected more than windows.day (1d)'),
        ({"budget": {"currency": "usd"}}, 'budget.currency: got "usd", expected text matching ^[A-Z]{3}$'),
        ({"thresholds": {"warm": 2}}, "thresholds.warm: got 2, expected at most 1"),
    ],
)
def test_mistakes(data, message):
    with pytest.raises(DocumentError, match=r"pack\.yaml") as caught:
        read_settings(data, "pack.yaml")
    assert str(caught.value) == f"pack.yaml: {message}"


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
