"""All rule files of the pack, as plain data and as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from . import alerts, records
from .alerts import text
from .model import Alert
from .names import Names

if TYPE_CHECKING:
    from .model import Group, Record
    from .settings import Settings

SUFFIX = ".rules.yaml"
HEADER = """\
# Written by `prefix-cache-exporter pack`; change pack.yaml and run it again instead of editing this file.
# Syntax that Prometheus 2.42 to 3.x accept.
"""


def rule_groups(settings: Settings) -> dict[str, tuple[Group, ...]]:
    """Every group by the name of its file, without suffix."""
    names = Names(settings)
    return {**records.groups(names), **alerts.groups(names)}


def rule_files(settings: Settings) -> dict[str, str]:
    """Every rule file by its name; the same settings give the same bytes."""
    names = Names(settings)
    return {
        f"{name}{SUFFIX}": HEADER + as_yaml({"groups": [group_data(names, group) for group in groups]})
        for name, groups in sorted(rule_groups(settings).items())
        if groups
    }


def group_data(names: Names, group: Group) -> dict[str, Any]:
    """A group as Prometheus reads it."""
    return {
        "name": group.name,
        "interval": str(names.settings.interval),
        "rules": [_alert(names, rule) if isinstance(rule, Alert) else _record(rule) for rule in group.rules],
    }


def _record(rule: Record) -> dict[str, Any]:
    return {"record": rule.series.name, "expr": rule.expr}


def _alert(names: Names, alert: Alert) -> dict[str, Any]:
    data: dict[str, Any] = {"alert": alert.name, "expr": alert.expr, "for": str(alert.hold)}
    if alert.keep:
        data["keep_firing_for"] = str(alert.keep)
    data["labels"] = {"severity": alert.severity, **alert.set_labels, **names.settings.labels.alerts}
    data["annotations"] = {
        "summary": alert.summary,
        "description": alert.description,
        "runbook_url": text.runbook_url(names, alert),
        "dashboard_url": text.dashboard_url(names, alert),
    }
    return data


class _Dumper(yaml.SafeDumper):
    """Keeps the order of keys and writes expressions of several lines as blocks."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        del indentless
        super().increase_indent(flow, indentless=False)


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)


def as_yaml(data: Any) -> str:
    """YAML for people to read and for `git diff` to compare: one line per value, blocks for what has several lines."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10**6)
