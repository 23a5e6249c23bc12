"""Checks of rules beyond their expressions: names, annotations, waits, labels, duplicates."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prefix_cache_exporter.pack.model import Alert, Record
from prefix_cache_exporter.pack.names import Names
from prefix_cache_exporter.pack.rules import group_data, rule_groups

from .expressions import Problem, Reader, compares
from .known import known_series

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from prefix_cache_exporter.pack.durations import Duration
    from prefix_cache_exporter.pack.model import Group
    from prefix_cache_exporter.pack.settings import Settings

    from .known import Known

_RECORD = re.compile(r"[a-z_]+:prefix_cache_[a-z_]+:[a-z]+[a-z0-9_]*")
_ALERT = re.compile(r"PrefixCache([A-Z][a-z]+)+")
_FOREIGN = re.compile(r"\bvllm:")
_LABEL = re.compile(r"\$labels\.(\w+)")
_QUERY = re.compile(r"with printf `([^`]*)`")
_PLACEHOLDER = re.compile(r"=%q")
_ANNOTATIONS = ("summary", "description", "runbook_url", "dashboard_url")
_EVALUATIONS = 2


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem and the rule that has it."""

    rule: str
    problem: Problem

    def __str__(self) -> str:
        return f"{self.rule}: {self.problem.check}: {self.problem.text}"


def lint(settings: Settings) -> list[Finding]:
    """Every finding in the rules that these settings give; empty where all is well."""
    names = Names(settings)
    groups = [group for file in rule_groups(settings).values() for group in file]
    recorded = [rule.series for group in groups for rule in group.rules if isinstance(rule, Record)]
    known = known_series(recorded, settings.labels.extra)
    findings = [*_duplicates(groups)]
    for group in groups:
        data = group_data(names, group)
        for rule, written in zip(group.rules, data["rules"], strict=True):
            name = rule.series.name if isinstance(rule, Record) else rule.name
            problems = (
                _record(rule, known) if isinstance(rule, Record) else _alert(rule, written, known, settings.interval)
            )
            findings += [Finding(name, problem) for problem in problems]
    return findings


def expression_problems(expr: str, known: Known) -> list[Problem]:
    """Problems of a single expression, as dashboards use it."""
    reader = Reader(known)
    reader.read(expr)
    if _FOREIGN.search(expr):
        reader.problems.append(Problem("rule/reject", "reads an engine's own name"))
    return reader.problems


def _record(rule: Record, known: Known) -> Iterator[Problem]:
    reader = Reader(known)
    shape = reader.read(rule.expr)
    yield from reader.problems
    if not _RECORD.fullmatch(rule.series.name):
        yield Problem("rule/name", "not level:measure:operation")
    if rule.series.kind == "ratio" and "_per_" not in rule.series.name and "ratio_" not in rule.series.name:
        yield Problem("rule/name", "a ratio whose name does not say both sides")
    if shape.labels != frozenset(rule.series.labels) or shape.open:
        yield Problem("promql/aggregate", f"has {sorted(shape.labels)}, is declared with {sorted(rule.series.labels)}")


def _alert(alert: Alert, written: Mapping[str, object], known: Known, interval: Duration) -> Iterator[Problem]:
    reader = Reader(known)
    shape = reader.read(alert.expr)
    yield from reader.problems
    if not _ALERT.fullmatch(alert.name):
        yield Problem("rule/name", "not CamelCase with the shared first part")
    if shape.labels != frozenset(alert.labels) or shape.open:
        yield Problem("alerts/template", f"has {sorted(shape.labels)}, is declared with {sorted(alert.labels)}")
    if not reader.problems and not compares(alert.expr):
        yield Problem("alerts/comparison", "always fires: the expression compares nothing")
    if alert.hold.milliseconds < _EVALUATIONS * interval.milliseconds:
        yield Problem("alerts/for", f"for {alert.hold} is less than {_EVALUATIONS} evaluations")
    yield from _texts(alert, written, known)


def _texts(alert: Alert, written: Mapping[str, object], known: Known) -> Iterator[Problem]:
    labels, annotations = written["labels"], written["annotations"]
    if not isinstance(labels, dict) or not isinstance(annotations, dict):
        raise TypeError("a written alert has labels and annotations")
    if "severity" not in labels:
        yield Problem("rule/label", "no severity")
    for label in sorted(set(labels) & set(alert.labels)):
        yield Problem("rule/label", f"sets {label}, which the expression has")
    for value in labels.values():
        if "$value" in value:
            yield Problem("alerts/template", "$value in a label: a new alert at every evaluation")
    yield from _annotations(alert, annotations, known)


def _annotations(alert: Alert, annotations: Mapping[str, str], known: Known) -> Iterator[Problem]:
    for name in _ANNOTATIONS:
        if not annotations.get(name):
            yield Problem("alerts/annotation", f"no {name}")
    if "{{" in alert.summary:
        yield Problem("alerts/annotation", "a summary that changes with the alert")
    for text in annotations.values():
        for label in sorted(set(_LABEL.findall(text)) - set(alert.labels)):
            yield Problem("alerts/template", f"$labels.{label}: the expression has no such label")
        for query in _QUERY.findall(text):
            reader = Reader(known)
            reader.read(_PLACEHOLDER.sub('="x"', query))
            yield from reader.problems


def _duplicates(groups: Iterable[Group]) -> Iterator[Finding]:
    seen: set[tuple[str, str]] = set()
    for group in groups:
        for rule in group.rules:
            name = rule.series.name if isinstance(rule, Record) else rule.name
            key = (name, "" if isinstance(rule, Record) else rule.expr)
            if key in seen:
                yield Finding(name, Problem("rule/duplicate", "stands twice"))
            seen.add(key)
