"""Parts of a dashboard's JSON, and the PromQL in it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import promql_parser as promql

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Json = Mapping[str, Any]

VARIABLE = re.compile(r"\$(?:(?!__)(\w+)|\{(?!__)(\w+)(?::\w+)?\})")
"""A use of a variable of the dashboard's own, in either form."""
_LABEL_VALUES = re.compile(r"label_values\((?:(?P<selector>.+),\s*)?(?P<label>\w+)\)", re.DOTALL)
_QUERY_RESULT = re.compile(r"query_result\((?P<expr>.+)\)", re.DOTALL)
_WINDOWS = {"$__rate_interval": "5m", "$__range": "6h", "$__interval": "1m"}


def panels(dashboard: Json) -> Iterator[Json]:
    """Every panel but headings, those in collapsed rows included."""
    for panel in dashboard.get("panels", ()):
        if panel.get("type") == "row":
            yield from panel.get("panels", ())
        else:
            yield panel


def variables(dashboard: Json, type_: str | None = None) -> Iterator[Json]:
    """Variables, of one type where asked."""
    for variable in dashboard.get("templating", {}).get("list", ()):
        if type_ in {None, variable.get("type")}:
            yield variable


def marks(dashboard: Json) -> Iterator[Json]:
    """Queries that mark times."""
    yield from dashboard.get("annotations", {}).get("list", ())


def asked(variable: Json) -> str:
    """The PromQL or selector that a query variable sends; empty where its form is unknown."""
    text = query_text(variable)
    found = _QUERY_RESULT.fullmatch(text) or _LABEL_VALUES.fullmatch(text)
    return (next(iter(found.groups())) or "") if found else ""


def query_text(variable: Json) -> str:
    """A query variable's query in its old form or in today's."""
    query = variable.get("query", "")
    return str(query.get("query", "")) if isinstance(query, dict) else str(query)


def parsed(expr: str) -> str:
    """The same PromQL with windows in place of Grafana's own variables."""
    for name, window in _WINDOWS.items():
        expr = expr.replace(name, window)
    return expr


def targets(dashboard: Json) -> Iterator[tuple[Json, str]]:
    """Every target of every panel, with its PromQL."""
    for panel in panels(dashboard):
        for target in panel.get("targets", ()):
            yield panel, target.get("expr", "")


def queries(dashboard: Json) -> Iterator[tuple[str, str]]:
    """Every PromQL expression, with where it stands."""
    yield from ((name(panel), expr) for panel, expr in targets(dashboard))
    yield from ((one["name"], asked(one)) for one in variables(dashboard, "query"))
    yield from ((one["name"], one.get("expr", "")) for one in marks(dashboard))


def name(panel: Json) -> str:
    """A panel, as a person finds it."""
    return f"panel {panel.get('id')} ({panel.get('title', '')})"


def selectors(expr: str) -> list[Any]:
    """Every selector of some PromQL; none where it does not parse."""
    if not expr or parses(expr):
        return []
    found: list[Any] = []

    def look(node: Any) -> bool:
        if isinstance(node, promql.VectorSelector):
            found.append(node)
        return True

    promql.walk(promql.parse(parsed(expr)), pre_visit=look)
    return found


def parses(expr: str) -> str:
    """Why some PromQL does not parse; empty where it does."""
    try:
        promql.parse(parsed(expr))
    except ValueError as error:
        return str(error)
    return ""


def matchers(expr: str) -> list[Any]:
    """Every matcher of some PromQL; none where it does not parse."""
    return [one for node in selectors(expr) for one in node.matchers.matchers]
