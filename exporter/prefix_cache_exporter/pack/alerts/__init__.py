"""Alerts, one idea per module; each has a constant name, a runbook and a promtool test of that name."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

from prefix_cache_exporter.pack.model import Alert, Group
from prefix_cache_exporter.pack.settings import AlertChange

if TYPE_CHECKING:
    from prefix_cache_exporter.pack.durations import Duration
    from prefix_cache_exporter.pack.names import Names
    from prefix_cache_exporter.pack.settings import Settings

MODULES = {
    "release": (
        "collapsed_after_release",
        "cold_window_exceeded",
        "dropped_without_release",
        "prefix_fragmented",
        "release_drift",
    ),
    "engine": (
        "eviction_pressure",
        "dead_below_block_size",
        "metric_map_mismatch",
        "engine_version_unverified",
        "weak_hash_shared",
    ),
    "usage": (
        "eligible_not_reused",
        "writes_not_paid_back",
        "input_cost_over_budget",
        "no_latency_gain",
        "evidence_disagrees",
        "coverage_low",
    ),
    "exporter": ("usage_log_stalled", "records_quarantined", "exporter_absent"),
}
"""Modules of this package by the group and file that their alerts go to."""


def groups(names: Names) -> dict[str, tuple[Group, ...]]:
    """Every alerting group by the file it goes to, changed as the pack file asks."""
    files: dict[str, tuple[Group, ...]] = {}
    for kind, modules in MODULES.items():
        rules: list[Alert] = []
        for name in modules:
            module = import_module(f"{__name__}.{name}")
            rules += filter(None, (_changed(names, alert) for alert in module.alerts(names)))
        files[f"{kind}-alerts"] = (Group(f"prefix-cache-{kind}-alerts", tuple(rules)),) if rules else ()
    return files


def _changed(names: Names, alert: Alert) -> Alert | None:
    change = names.settings.alerts.get(alert.name, AlertChange())
    if not change.enabled:
        return None
    return replace(
        alert,
        hold=change.for_ or _past_the_window(names.settings, alert.hold),
        keep=change.keep_firing_for or alert.keep,
        severity=change.severity or alert.severity,
    )


def _past_the_window(settings: Settings, hold: Duration) -> Duration:
    """Longer than the short window: the last requests of a draining revision are judged while they are in it."""
    short, interval = settings.windows.short, settings.interval
    return hold if hold > short else type(hold)(short.milliseconds + interval.milliseconds)
