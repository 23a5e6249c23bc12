"""Variables of the dashboards, and the matchers that apply them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grafanalib.core import HIDE_VARIABLE, REFRESH_ON_TIME_RANGE_CHANGE, SORT_DISABLED, Template

from prefix_cache_exporter import measures
from prefix_cache_exporter.pack import queries

from .shapes import Variable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prefix_cache_exporter.pack.names import Names

RELEASE = ("source", "model", "template", "template_revision")
"""Labels that have a variable on every dashboard."""
NAMESPACE = "namespace"
_TITLES = {
    "source": "Source",
    "model": "Model",
    "template": "Template",
    "template_revision": "Template revision",
    "namespace": "Namespace",
}


def chosen(labels: Iterable[str], available: Iterable[str]) -> tuple[str, ...]:
    """Matchers for those of some labels that a series has."""
    have = set(available)
    return tuple(f'{label}=~"${label}"' for label in labels if label in have)


def datasource() -> Template:
    """The Prometheus to ask."""
    return Variable(name="datasource", label="Data Source", query="prometheus", type="datasource", refresh=1)


def by_label(
    names: Names, label: str, family: measures.Family, after: Iterable[str], *, several: bool = True
) -> Template:
    """Values of one label on a family that the exporter emits, narrowed by the variables before it."""
    selector = queries.select(family.series_name, names.settings.selector, *chosen(after, family.labels))
    return Variable(
        name=label,
        label=_TITLES[label],
        query=f"label_values({selector}, {label})",
        refresh=REFRESH_ON_TIME_RANGE_CHANGE,
        multi=several,
        includeAll=several,
        # Not `.+`: traffic that nobody has named a release for has an empty label, and All means all.
        allValue=".*" if several else None,
        sort=5,
    )


def release_variables(
    names: Names, family: measures.Family | None = None, *, namespaces: bool = False
) -> list[Template]:
    """Data source, source, model, template and revision, each narrowed by those before; namespaces where asked.

    `family` is what knows the values: the first traffic of releases by default, which both planes have.
    """
    known = family or measures.EXPORTER["release_first_traffic_timestamp_seconds"]
    found = [datasource()]
    for place, label in enumerate(RELEASE):
        found.append(by_label(names, label, known, RELEASE[:place]))
    if namespaces:
        found.append(by_label(names, NAMESPACE, measures.USAGE["requests"], RELEASE))
    return found


def from_result(name: str, label: str, expr: str, regex: str, *, hidden: bool = False) -> Template:
    """A single value read from a query's result, in the order of the result."""
    return Variable(
        name=name,
        label=label,
        query=f"query_result({expr})",
        regex=regex,
        refresh=REFRESH_ON_TIME_RANGE_CHANGE,
        sort=SORT_DISABLED,
        hide=HIDE_VARIABLE if hidden else 0,
    )
