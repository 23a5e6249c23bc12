"""The dashboards as the pack makes them, and their variables as Grafana fills them in."""

from __future__ import annotations

import functools
import json
import re
from typing import Any

from prefix_cache_exporter.pack.dashboards.files import dashboard_files
from prefix_cache_exporter.pack.dashboards.lint.document import VARIABLE, variables
from prefix_cache_exporter.pack.settings import default_settings

NAMES = ("overview", "release", "engine", "usage", "trust", "health")
_USE = re.compile(rf"(?:{VARIABLE.pattern})")


@functools.cache
def board(name: str) -> Any:
    """One dashboard as it is installed."""
    return json.loads(dashboard_files(default_settings())[f"{name}.json"])


def filled(expr: str, chosen: dict[str, list[str]], windows: dict[str, str]) -> str:
    """PromQL with Grafana's windows and with values: several become a pattern, and what they hold is text."""
    for name, window in windows.items():
        expr = expr.replace(name, window)
    return _USE.sub(lambda found: _value(found, chosen), expr)


def _value(found: re.Match[str], chosen: dict[str, list[str]]) -> str:
    values = chosen[found[1] or found[2]]
    if values == [".*"]:
        return ".*"
    if ":regex}" in found[0]:
        return "|".join(map(re.escape, values))
    escaped = [re.escape(value).replace("\\", "\\\\") for value in values]
    return f"({'|'.join(escaped)})" if len(values) > 1 else values[0]


def everything(dashboard: Any) -> dict[str, list[str]]:
    """All for every variable that has it."""
    return {one["name"]: [".*"] for one in variables(dashboard, "query") if one["includeAll"]}
