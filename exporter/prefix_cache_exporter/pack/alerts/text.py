"""Annotations: values that an alert's own expression does not carry are asked of the recorded series by its labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.pack import queries

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prefix_cache_exporter.pack.durations import Duration
    from prefix_cache_exporter.pack.model import Alert, Series
    from prefix_cache_exporter.pack.names import Names

VARIABLES = ("source", "model", "template", "template_revision", "namespace")
"""Labels that are variables of the dashboards; links keep them."""
TOKENS, PERCENT, MONEY, SECONDS, DURATION = "%.0f", "percent", "%.4f", "%.3f", "duration"


def label(name: str) -> str:
    """A label's value, or what to read where it is empty: records and engines that name no release are judged, too."""
    return f'{{{{ or $labels.{name} "(none)" }}}}'


TEMPLATE = f"template {label('template')} ({{{{ $labels.model }}}}, source {{{{ $labels.source }}}})"
REVISION = f"Revision {label('template_revision')} of {TEMPLATE}"
PERCENT_VALUE = "{{ $value | humanizePercentage }}"


def value(
    series: Series,
    form: str,
    factor: float = 1,
    fixed: Mapping[str, str] | None = None,
    offset: Duration | None = None,
) -> str:
    """A template that prints a recorded series at the alert's labels, or "unknown" where it is absent."""
    fixed = fixed or {}
    free = [label for label in series.labels if label not in fixed]
    matchers = ",".join([*(f"{label}=%q" for label in free), *(f'{key}="{text}"' for key, text in fixed.items())])
    query = f"{series.name}{{{matchers}}}"
    query += f" offset {offset}" if offset else ""
    query += f" * {queries.number(factor)}" if factor != 1 else ""
    arguments = "".join(f" $labels.{label}" for label in free)
    shown = {PERCENT: "humanizePercentage", DURATION: "humanizeDuration"}.get(form, f'printf "{form}"')
    # Backquotes: the query is one raw string of the template language, whatever it quotes.
    asked = f"with printf `{query}`{arguments} | query"
    return f"{{{{ {asked} }}}}{{{{ . | first | value | {shown} }}}}{{{{ else }}}}unknown{{{{ end }}}}"


def runbook_url(names: Names, alert: Alert) -> str:
    """Where the alert's runbook is published."""
    return f"{names.settings.links.runbooks.rstrip('/')}/{alert.name}.md"


def dashboard_url(names: Names, alert: Alert) -> str:
    """The dashboard to open first, set to what the alert is about."""
    pairs = [f"var-{label}={{{{ $labels.{label} | urlquery }}}}" for label in VARIABLES if label in alert.labels]
    query = f"?{'&'.join(pairs)}" if pairs else ""
    return f"{names.settings.links.grafana.rstrip('/')}/d/{alert.dashboard}{query}"
