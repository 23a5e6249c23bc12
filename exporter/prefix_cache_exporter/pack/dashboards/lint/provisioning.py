"""What breaks a dashboard on another installation than its author's: ids, data sources, variables, links."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import promql_parser as promql

from prefix_cache_exporter.pack.dashboards.shapes import DATASOURCE, SCHEMA_VERSION

from .document import VARIABLE, marks, matchers, name, panels, queries, query_text, variables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .document import Json

_METRIC = re.compile(r"\bprefix_cache_|__name__=~")


def provisioning(dashboard: Json) -> Iterator[tuple[str, str]]:
    """Nothing is left to fill in by hand, and nothing of another installation is left in."""
    for key in ("__inputs", "__requires"):
        if key in dashboard:
            yield "", f"{key}: provisioning does not fill it in"
    if dashboard.get("id") is not None:
        yield "", "id: belongs to one installation, expected null"
    if not re.fullmatch(r"[a-zA-Z0-9-]{3,40}", dashboard.get("uid") or ""):
        yield "", "uid: expected a stable one of its own"
    for variable in variables(dashboard, "datasource"):
        if variable.get("current", {}).get("value"):
            yield variable["name"], "a data source of another installation is chosen"
    if not list(variables(dashboard, "datasource")):
        yield "", "no variable for the data source"
    asking = [(name(panel), panel, True) for panel in panels(dashboard)]
    asking += [(where, one, False) for where, panel, _ in asking for one in panel.get("targets", ())]
    asking += [(one["name"], one, True) for one in (*variables(dashboard, "query"), *marks(dashboard))]
    for where, one, needed in asking:
        if (needed or "datasource" in one) and one.get("datasource") != DATASOURCE:
            yield where, f"data source {one.get('datasource')}, expected the variable"


def matching(dashboard: Json) -> Iterator[tuple[str, str]]:
    """Variables of several values are escaped for patterns, and one that may stay empty still matches everything."""
    several = {one["name"] for one in variables(dashboard) if one.get("multi") or one.get("includeAll")}
    for where, expr in queries(dashboard):
        for matcher in matchers(expr):
            used = {first or second for first, second in VARIABLE.findall(matcher.value)}
            if used & several and matcher.op != promql.MatchOp.Re:
                yield where, f"{matcher}: a variable of several values needs =~"
            if used - several and matcher.op == promql.MatchOp.Re and ":regex}" not in matcher.value:
                yield where, f"{matcher}: a single value in a pattern needs the format regex"
    for variable in variables(dashboard, "query"):
        if not _METRIC.search(query_text(variable)):
            yield variable["name"], f"{query_text(variable)}: names no metric of this exporter"


def defined(dashboard: Json) -> Iterator[tuple[str, str]]:
    """Variables that are used exist."""
    names = {variable["name"] for variable in variables(dashboard)}
    for text in strings(dashboard):
        for first, second in VARIABLE.findall(text):
            if (first or second) not in names:
                yield "", f"${first or second}: used and not defined, in {text[:60]}"


def strings(value: Any) -> Iterator[str]:
    """Every string in a document."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from strings(one)
    elif isinstance(value, list):
        for one in value:
            yield from strings(one)


def current_schema(dashboard: Json) -> Iterator[tuple[str, str]]:
    """The form that the panels are written in."""
    if dashboard.get("schemaVersion") != SCHEMA_VERSION:
        yield "", f"schemaVersion {dashboard.get('schemaVersion')}, expected {SCHEMA_VERSION}"


def links(dashboard: Json) -> Iterator[tuple[str, str]]:
    """Links lead to the other dashboards and keep what the reader chose."""
    links = dashboard.get("links", ())
    if not links:
        yield "", "no links to the other dashboards"
    for link in links:
        if not (link.get("keepTime") and link.get("includeVars")):
            yield link.get("title", ""), "a link that loses the time range or the variables"
