"""A usage log no longer gives records: what is shown of that source is the past."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.pack import queries
from prefix_cache_exporter.pack.alerts import dashboards, text
from prefix_cache_exporter.pack.durations import Duration
from prefix_cache_exporter.pack.model import Alert
from prefix_cache_exporter.pack.records import exporter

if TYPE_CHECKING:
    from prefix_cache_exporter.pack.names import Names

NAME = "PrefixCacheUsageLogStalled"


def alerts(names: Names) -> tuple[Alert, ...]:
    """Three kinds of evidence; a log that is merely quiet is none of them."""
    settings = names.settings
    short = settings.windows.short
    busy = (
        f"{exporter.served(names, 'engine')} * {queries.number(short.seconds)}"
        f" >= {queries.number(settings.floors.prompt_tokens)}"
    )
    logs = text.value(exporter.logs(names), text.TOKENS)
    tokens = f'{{{{ $value | printf "{text.TOKENS}" }}}}'
    return (
        _alert(
            names,
            "stuck",
            f"{exporter.logs_stuck(names)} > 0",
            f"{tokens} of {logs} logs have unread bytes but have given no record for {settings.thresholds.log_stalled}",
        ),
        _alert(
            names,
            "unreadable",
            f"{exporter.logs_unreadable(names)} > 0",
            f"{tokens} of {logs} logs cannot be read, or no file matches",
        ),
        _alert(
            names,
            "silent",
            f"({busy})\nand ({exporter.lines(names)} == 0)",
            f"the engine of the same name served {tokens} prompt tokens in {short}, and none of {logs} logs got a line",
        ),
    )


def _alert(names: Names, reason: str, expr: str, finding: str) -> Alert:
    return Alert(
        name=NAME,
        expr=expr,
        labels=names.labels("source"),
        severity="warning",
        hold=Duration.parse("15m" if reason == "silent" else "10m"),
        summary="A usage log no longer gives records.",
        description=(
            f"Source {{{{ $labels.source }}}}: {finding}. Until it moves, ratios of the usage plane, their numerators,"
            " denominators and baselines are absent for every revision of this source."
        ),
        dashboard=dashboards.EXPORTER,
        set_labels={"reason": reason},
    )
