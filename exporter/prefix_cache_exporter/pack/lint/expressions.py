"""Reads an expression as Prometheus would and reports what is wrong with it, each finding under a check's name.

The names are pint's where the check is pint's (https://cloudflare.github.io/pint/checks/), `ratio/…` where a rule of
this project has no counterpart there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import promql_parser as promql

from .known import Known, Shape

_RATES = frozenset({"rate", "increase", "irate"})
_PRESENCE = frozenset({"count", "group", "absent", "absent_over_time", "count_over_time", "present_over_time"})
_COMPARISONS = frozenset({">", "<", ">=", "<=", "==", "!="})
_SETS = frozenset({"and", "or", "unless"})
_SUMS, _MEANS = frozenset({"sum", "sum_over_time"}), frozenset({"avg", "avg_over_time"})
_META = re.compile(r"[.*+?\[\](){}|\\^$]")
_NUMBER = Shape("number")


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding.

    Attributes:
        check: the name of the check.
        text: what was found, with the offending part.
    """

    check: str
    text: str


@dataclass(slots=True)
class Reader:
    """Walks one expression; `problems` fills up on the way."""

    known: Known
    problems: list[Problem] = field(default_factory=list)

    def read(self, expr: str) -> Shape:
        """Parses and walks an expression; returns the shape of its result."""
        try:
            tree = promql.parse(expr)
        except ValueError as error:
            self._report("promql/syntax", str(error))
            return _NUMBER
        return self._visit(tree)

    def _report(self, check: str, text: str) -> None:
        self.problems.append(Problem(check, text))

    def _visit(self, node: Any, *, within: str = "") -> Shape:
        match node:
            case promql.ParenExpr() | promql.UnaryExpr() | promql.SubqueryExpr():
                shape = self._visit(node.expr, within=within)
            case promql.NumberLiteral() | promql.StringLiteral():
                shape = _NUMBER
            case promql.MatrixSelector():
                shape = self._visit(node.vector_selector, within=within)
            case promql.VectorSelector():
                shape = self._selector(node, within)
            case promql.Call():
                shape = self._call(node)
            case promql.AggregateExpr():
                shape = self._aggregate(node)
            case _:
                shape = self._binary(node)
        return shape

    def _selector(self, node: Any, within: str) -> Shape:
        shape = self.known.shapes.get(node.name or "")
        if shape is None:
            self._report("promql/series", f"{node.name}: nobody emits or records it")
            return _NUMBER
        if shape.kind == "counter" and within not in _RATES | _PRESENCE:
            self._report("promql/counter", f"{node.name}: a counter without rate or increase")
        if shape.kind != "counter" and within in _RATES:
            self._report("promql/rate", f"{node.name}: {within} of what is no counter")
        for matcher in node.matchers.matchers:
            self._matcher(node.name, shape, matcher)
        return shape

    def _matcher(self, name: str, shape: Shape, matcher: Any) -> None:
        known = shape.labels | (self.known.target_labels if shape.open else frozenset())
        if matcher.name not in known and not shape.open:
            self._report("promql/impossible", f"{name}: it has no label {matcher.name}")
        if matcher.op in (promql.MatchOp.Re, promql.MatchOp.NotRe):
            if not _META.search(matcher.value):
                self._report("promql/regexp", f"{matcher}: a pattern without a wildcard; compare for equality")
            if matcher.value.startswith("^") or matcher.value.endswith("$"):
                self._report("promql/regexp", f"{matcher}: matchers are anchored already")

    def _call(self, node: Any) -> Shape:
        name = node.func.name
        shapes = [self._visit(arg, within=name) for arg in node.args]
        shape = next((shape for shape in shapes if not shape.scalar), _NUMBER)
        self._averaging(name, shape)
        if name in _RATES:
            return Shape("rate", shape.labels, open=shape.open)
        if name.startswith("absent"):
            return Shape("level", frozenset(self._equalities(node.args[0])))
        if name == "histogram_quantile":
            return Shape(shape.kind, shape.labels - {"le"}, open=shape.open)
        return Shape("level", shape.labels, open=shape.open) if name in _PRESENCE else shape

    @staticmethod
    def _equalities(node: Any) -> list[str]:
        selector = getattr(node, "vector_selector", node)
        matchers = selector.matchers.matchers if isinstance(selector, promql.VectorSelector) else []
        return [matcher.name for matcher in matchers if matcher.op == promql.MatchOp.Equal]

    def _averaging(self, operation: str, shape: Shape) -> None:
        if shape.kind == "ratio" and operation in _SUMS:
            self._report("ratio/sum", f"{operation} of a ratio: add numerators and denominators, then divide")
        if shape.kind == "ratio" and operation in _MEANS:
            self._report("ratio/mean", f"{operation} of ratios: add numerators and denominators, then divide")

    def _aggregate(self, node: Any) -> Shape:
        operation = str(node.op)
        inner = self._visit(node.expr, within=operation)
        self._averaging(operation, inner)
        if node.modifier is None or node.modifier.type != promql.AggModifierType.By:
            self._report("promql/aggregate", f"{operation} without by: say which labels stay")
            return Shape(inner.kind)
        labels = frozenset(node.modifier.labels)
        allowed = inner.labels | (self.known.target_labels if inner.open else frozenset())
        for label in sorted(labels - allowed):
            self._report("promql/impossible", f"{operation} by {label}: what is aggregated has no such label")
        return Shape("level" if operation in _PRESENCE else inner.kind, labels)

    def _binary(self, node: Any) -> Shape:
        operation = str(node.op)
        left, right = self._visit(node.lhs), self._visit(node.rhs)
        if operation == "/" and not _guarded(node.rhs):
            self._report("promql/nan", f"division by {node.rhs.prettify()}: guard the denominator with > 0")
        if operation == "+" and left.kind == right.kind == "ratio" and not _zeroed(node.lhs):
            self._report("ratio/sum", "a sum of ratios: add numerators and denominators, then divide")
        if left.scalar or right.scalar:
            return right if left.scalar else left
        return self._matched(node, operation, left, right)

    def _matched(self, node: Any, operation: str, left: Shape, right: Shape) -> Shape:
        matching = node.modifier.matching if node.modifier else None
        many = node.modifier and node.modifier.card in (
            promql.VectorMatchCardinality.ManyToOne,
            promql.VectorMatchCardinality.OneToMany,
        )
        if matching is None:
            if (left.labels, left.open) != (right.labels, right.open):
                self._report("promql/vector_matching", _differ(operation, left, right))
        else:
            on = frozenset(matching.labels)
            for side, shape in (("left", left), ("right", right)):
                for label in sorted(on - shape.labels):
                    self._report("promql/vector_matching", f"on ({label}): the {side} side has no such label")
            if operation not in _SETS and not many and left.labels != right.labels:
                self._report("promql/vector_matching", f"{_differ(operation, left, right)}; needs group_left")
        return Shape("ratio" if operation == "/" else left.kind, left.labels, open=left.open)


def _guarded(node: Any) -> bool:
    while isinstance(node, promql.ParenExpr):
        node = node.expr
    if isinstance(node, promql.NumberLiteral):
        return bool(node.val != 0)
    if not isinstance(node, promql.BinaryExpr) or str(node.op) not in {">", ">="}:
        return False
    limit = node.rhs
    positive = isinstance(limit, promql.NumberLiteral) and (limit.val > 0 or (limit.val == 0 and str(node.op) == ">"))
    return positive and not (node.modifier and node.modifier.return_bool)


def _zeroed(node: Any) -> bool:
    """`… * 0`: a label set to join a value onto, no value of its own."""
    while isinstance(node, promql.ParenExpr):
        node = node.expr
    is_product = isinstance(node, promql.BinaryExpr) and str(node.op) == "*"
    return is_product and isinstance(node.rhs, promql.NumberLiteral) and node.rhs.val == 0


def compares(expr: str) -> bool:
    """Whether an alert's expression can be empty: it compares, or asks for absence."""
    found: list[bool] = []

    def look(node: Any) -> bool:
        filters = isinstance(node, promql.BinaryExpr) and (
            str(node.op) == "unless"
            or (str(node.op) in _COMPARISONS and not (node.modifier and node.modifier.return_bool))
        )
        asks = isinstance(node, promql.Call) and node.func.name.startswith("absent")
        if filters or asks:
            found.append(True)
        return True

    promql.walk(promql.parse(expr), pre_visit=look)
    return bool(found)


def _differ(operation: str, left: Shape, right: Shape) -> str:
    return f"{operation} between {', '.join(sorted(left.labels))} and {', '.join(sorted(right.labels))}"
