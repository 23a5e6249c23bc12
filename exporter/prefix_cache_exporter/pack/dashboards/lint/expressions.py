"""PromQL of a dashboard under the checks that the pack's rules are held to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import promql_parser as promql

from prefix_cache_exporter.pack.lint.files import expression_problems
from prefix_cache_exporter.pack.lint.known import Known, Shape, known_series
from prefix_cache_exporter.pack.model import Record
from prefix_cache_exporter.pack.rules import rule_groups

from .document import parsed, parses, queries, variables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prefix_cache_exporter.pack.settings import Settings

    from .document import Json

AGGREGATED_AWAY = "promql/aggregate"
"""The one check that does not hold on dashboards: a tile adds up everything that the reader chose."""
_ALERTS = frozenset({"alertname", "alertstate", "severity", "source", "model", "template", "template_revision"})
"""What alerts of the pack carry, each alert some of it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem.

    Attributes:
        rule: which rule was broken.
        where: the panel, variable or annotation; empty for the dashboard itself.
        text: what was found.
    """

    rule: str
    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.where or 'dashboard'}: {self.text}"


def known(settings: Settings) -> Known:
    """What queries may read: the exporter's families, and what the rules of these settings record."""
    groups = [group for file in rule_groups(settings).values() for group in file]
    recorded = [rule.series for group in groups for rule in group.rules if isinstance(rule, Record)]
    shapes = known_series(recorded, settings.labels.extra)
    return Known({**shapes.shapes, "ALERTS": Shape("gauge", _ALERTS)}, shapes.target_labels)


def expressions(dashboard: Json, series: Known) -> Iterator[Finding]:
    """The pack's own checks of PromQL, and: recorded series are read where they say the same."""
    # A variable lists a counter's labels; nobody looks at its value.
    listed = {("promql/counter", one["name"]) for one in variables(dashboard)}
    for where, expr in queries(dashboard):
        if parses(expr) or "__name__" in expr:
            continue
        for problem in expression_problems(parsed(expr), series):
            if problem.check != AGGREGATED_AWAY and (problem.check, where) not in listed:
                check = {"promql/counter": "target-counter-agg-rule"}.get(problem.check, problem.check)
                yield Finding(check, where, problem.text)
        for name, recorded in _avoidable(expr, series):
            yield Finding("recorded", where, f"{name}: {recorded} says the same")


def _avoidable(expr: str, series: Known) -> Iterator[tuple[str, str]]:
    """Sums over raw series that a rule has done already, with the recorded series."""
    found: list[tuple[Any, Any, str]] = []

    def look(node: Any) -> bool:
        if isinstance(node, promql.AggregateExpr):
            inner: Any = node.expr
            call = inner.func.name if isinstance(inner, promql.Call) else ""
            if call == "rate":
                inner = inner.args[0].vector_selector
            if isinstance(inner, promql.VectorSelector):
                found.append((node, inner, call))
        return True

    promql.walk(promql.parse(parsed(expr)), pre_visit=look)
    for node, selector, call in found:
        shape = series.shapes.get(selector.name)
        if shape is None or not shape.open or (call == "rate" and "$__rate_interval" not in expr):
            continue
        kept = set(node.modifier.labels) if node.modifier else set()
        kept |= {matcher.name for matcher in selector.matchers.matchers}
        operation = "rate5m" if call else str(node.op)
        middle = selector.name.removesuffix("_total")
        for name, other in series.shapes.items():
            if name.endswith(f":{middle}:{operation}") and kept <= other.labels:
                yield selector.name, name
                break
