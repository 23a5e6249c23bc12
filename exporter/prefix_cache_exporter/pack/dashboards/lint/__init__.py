"""Reads a dashboard's JSON as those would who install it, and says what is wrong with it, rule by rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import linter, provisioning, reading
from .expressions import Finding, expressions, known

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from prefix_cache_exporter.pack.lint.known import Known

    from .document import Json

__all__ = ["RULES", "Finding", "known", "lint"]

RULES: Mapping[str, Callable[[Json], Iterator[tuple[str, str]]]] = {
    "template-datasource-rule": linter.one_datasource,
    "template-label-promql-rule": linter.label_promql,
    "template-on-time-change-reload-rule": linter.reloads,
    "panel-datasource-rule": linter.panel_datasource,
    "panel-title-description-rule": linter.described,
    "panel-units-rule": linter.units,
    "panel-no-targets-rule": linter.no_targets,
    "target-logql-rule": linter.prometheus_only,
    "target-logql-auto-rule": linter.prometheus_only,
    "target-promql-rule": linter.promql_parses,
    "target-rate-interval-rule": linter.rate_interval,
    "uneditable-dashboard": linter.uneditable,
    "provisioning": provisioning.provisioning,
    "matching": provisioning.matching,
    "variables-defined": provisioning.defined,
    "schema-version": provisioning.current_schema,
    "links": provisioning.links,
    "rate-interval-step": reading.waits_enough,
    "names-described": reading.reads_named,
    "sides-described": reading.sides_named,
    "no-traffic": reading.says_no_traffic,
    "planes-apart": reading.planes_apart,
    "quiet-quantiles": reading.quiet_quantiles,
    "grid": reading.fits,
}
"""`target-counter-agg-rule` is among `expressions`: the catalogue knows what a counter is, a name only suggests it."""


def lint(dashboard: Json, series: Known) -> list[Finding]:
    """Every finding in a dashboard; `series` is what the settings that it was generated with record (see `known`)."""
    findings = [Finding(name, where, text) for name, rule in RULES.items() for where, text in rule(dashboard)]
    return [*findings, *expressions(dashboard, series)]
