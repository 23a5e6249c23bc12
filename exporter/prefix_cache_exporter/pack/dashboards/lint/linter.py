"""The rules of Grafana's dashboard-linter (https://github.com/grafana/dashboard-linter/blob/main/docs/index.md)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from prefix_cache_exporter.pack.dashboards.shapes import DATASOURCE

from .document import asked, name, panels, parses, queries, query_text, targets, variables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .document import Json

EXCEPTIONS = {
    "template-job-rule": "recorded series have neither job nor instance: rules add over pods",
    "template-instance-rule": "recorded series have neither job nor instance: rules add over pods",
    "target-job-rule": "recorded series have neither job nor instance: rules add over pods",
    "target-instance-rule": "recorded series have neither job nor instance: rules add over pods",
}
"""Rules that do not hold here, with the reason."""
_RATES = ("increase", "irate", "rate")


def one_datasource(dashboard: Json) -> Iterator[tuple[str, str]]:
    """One variable for the data source, under the name that everybody expects."""
    found = list(variables(dashboard, "datasource"))
    if len(found) != 1:
        yield "", f"{len(found)} variables of type datasource, expected one"
    for variable in found:
        if (variable.get("name"), variable.get("label")) != ("datasource", "Data Source"):
            yield variable["name"], "expected the name datasource and the label Data Source"


def label_promql(dashboard: Json) -> Iterator[tuple[str, str]]:
    """Variables ask in PromQL."""
    for variable in variables(dashboard, "query"):
        expr = asked(variable)
        if not expr or parses(expr):
            yield variable["name"], f"not PromQL: {query_text(variable)}"


def reloads(dashboard: Json) -> Iterator[tuple[str, str]]:
    """Variables ask again when the time range changes."""
    for variable in variables(dashboard, "query"):
        if variable.get("refresh") != 2:  # noqa: PLR2004  # Grafana's number for: when the time range changes
            yield variable["name"], "does not ask again when the time range changes"


def panel_datasource(dashboard: Json) -> Iterator[tuple[str, str]]:
    """Panels read the data source that the reader chose."""
    for panel in panels(dashboard):
        if panel.get("datasource") != DATASOURCE:
            yield name(panel), f"data source {panel.get('datasource')}, expected {DATASOURCE}"


def described(dashboard: Json) -> Iterator[tuple[str, str]]:
    """Panels have a title and a description."""
    for panel in panels(dashboard):
        for key in ("title", "description"):
            if not panel.get(key):
                yield name(panel), f"no {key}"


def units(dashboard: Json) -> Iterator[tuple[str, str]]:
    """Panels have a unit."""
    for panel in panels(dashboard):
        if not panel.get("fieldConfig", {}).get("defaults", {}).get("unit"):
            yield name(panel), "no unit"


def no_targets(dashboard: Json) -> Iterator[tuple[str, str]]:
    """Panels ask something."""
    for panel in panels(dashboard):
        if not panel.get("targets"):
            yield name(panel), "asks nothing"


def prometheus_only(dashboard: Json) -> Iterator[tuple[str, str]]:
    """Covers both rules of LogQL: no target speaks it."""
    for panel in panels(dashboard):
        for target in panel.get("targets", ()):
            if target.get("datasource", DATASOURCE).get("type") != "prometheus":
                yield name(panel), "a target of another kind of data source"


def promql_parses(dashboard: Json) -> Iterator[tuple[str, str]]:
    """Queries are PromQL."""
    for where, expr in queries(dashboard):
        error = parses(expr)
        if error:
            yield where, error


def rate_interval(dashboard: Json) -> Iterator[tuple[str, str]]:
    """A counter's window is Grafana's, or the panel says which."""
    for panel, expr in targets(dashboard):
        for window in re.findall(rf"\b(?:{'|'.join(_RATES)})\([^\[\]]*\[([^\]]+)\]", expr):
            said = {"$__range": "time range shown"}.get(window, window)
            text = panel.get("description", "")
            if window != "$__rate_interval" and not re.search(rf"\b{re.escape(said)}\b", text):
                yield name(panel), f"a rate over {window}, which its description does not say"


def uneditable(dashboard: Json) -> Iterator[tuple[str, str]]:
    """Nobody edits what the next release overwrites."""
    if dashboard.get("editable") is not False:
        yield "", "can be edited, though the next release overwrites it"
