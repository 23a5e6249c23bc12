"""An exporter is gone, and every other rule would stay silent about it.

Scaling to zero is no failure: pods that go after their traffic has ended go unreported, until none has been known for
longer than any night or weekend.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.pack import queries
from prefix_cache_exporter.pack.alerts import conditions, dashboards, text
from prefix_cache_exporter.pack.durations import Duration
from prefix_cache_exporter.pack.model import Alert
from prefix_cache_exporter.pack.records import exporter

if TYPE_CHECKING:
    from prefix_cache_exporter.pack.names import Names

NAME = "PrefixCacheExporterAbsent"
_CONSEQUENCE = "Ratios, their numerators, denominators and baselines are absent for every revision there."


def alerts(names: Names) -> tuple[Alert, ...]:
    """Targets that do not answer, sources that vanished under load, and no exporter at all."""
    settings = names.settings
    long, up, known = settings.windows.long, exporter.targets_up(names), exporter.targets(names)
    down = f"1 - {up} / ({known} > 0)"
    vanished = "\nor\n".join(
        f"((last_over_time({series}[{long}]) > 0) unless {series})"
        for series in (exporter.served(names, plane) for plane in conditions.PLANES)
    )
    # absent() keeps the labels of equality matchers only:
    # https://prometheus.io/docs/prometheus/latest/querying/functions/#absent
    job = queries.select(known, f"job={queries.quoted(settings.job)}")
    return (
        _alert(
            "down",
            f"({down}) > {queries.number(settings.thresholds.exporters_down)}",
            known.labels,
            "10m",
            f"Job {{{{ $labels.job }}}}: {text.PERCENT_VALUE} of exporters do not answer"
            f" ({text.value(up, text.TOKENS)} of {text.value(known, text.TOKENS)} do). {_CONSEQUENCE}",
        ),
        _alert(
            "vanished",
            vanished,
            names.labels("source"),
            "10m",
            f"Source {{{{ $labels.source }}}} carried traffic within {long} and is not exported any more, without"
            f" having come to rest before. {_CONSEQUENCE}",
        ),
        _alert(
            "none",
            f"absent_over_time({job}[{settings.thresholds.exporters_gone}])",
            ("job",),
            "15m",
            "Job {{ $labels.job }}: Prometheus has known no exporter for"
            f" {settings.thresholds.exporters_gone}. {_CONSEQUENCE}",
        ),
    )


def _alert(reason: str, expr: str, labels: tuple[str, ...], hold: str, description: str) -> Alert:
    return Alert(
        name=NAME,
        expr=expr,
        labels=labels,
        severity="warning",
        hold=Duration.parse(hold),
        summary="Prefix-cache exporters are missing, so every other rule stays silent.",
        description=description,
        dashboard=dashboards.EXPORTER,
        set_labels={"reason": reason},
    )
