"""The exporters themselves, counted over pods: targets, map states, logs, records that could not be decided."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.measures import ENGINE, USAGE
from prefix_cache_exporter.pack import queries
from prefix_cache_exporter.pack.model import Record

from . import rates

if TYPE_CHECKING:
    from prefix_cache_exporter.pack.model import Series
    from prefix_cache_exporter.pack.names import Names

_QUARANTINED, _LOST, _LINES = (USAGE[id_] for id_ in ("quarantined_records", "lost_lines", "lines"))


def targets(names: Names) -> Series:
    """Exporters that Prometheus knows."""
    return names.series("job", "prefix_cache_exporter_targets", "count")


def targets_up(names: Names) -> Series:
    """Those that answered the last scrape."""
    return names.series("job", "prefix_cache_exporter_targets_up", "sum")


def engines(names: Names) -> Series:
    """Engines polled, per source."""
    return names.series("source", ENGINE["up"].name, "count")


def engines_up(names: Names) -> Series:
    """Engines whose last poll gave a whole page, per source."""
    return names.series("source", ENGINE["up"].name, "sum")


def map_state(names: Names) -> Series:
    """Engines by the state of their metric map."""
    return names.series("source", ENGINE["map_state"].name, "sum", kept=("state",))


def logs(names: Names) -> Series:
    """Usage logs followed, per source."""
    return names.series("source", USAGE["log_readable"].name, "count")


def logs_unreadable(names: Names) -> Series:
    """Exporters whose log cannot be read or does not exist."""
    return names.series("source", "prefix_cache_usage_logs_unreadable", "count")


def logs_stuck(names: Names) -> Series:
    """Exporters whose log has unread bytes but gave no record for long."""
    return names.series("source", "prefix_cache_usage_logs_stuck", "count")


def lines(names: Names) -> Series:
    """Log lines read per second."""
    return names.rate(_LINES, names.settings.windows.short, level="source")


def served(names: Names, plane: str) -> Series:
    """Traffic of a source: prompt tokens of an engine, requests of a usage log, per second."""
    family = ENGINE["prompt_tokens"] if plane == "engine" else USAGE["requests"]
    return names.rate(family, names.settings.windows.short, level="source")


def quarantined(names: Names) -> Series:
    """Quarantined records per second over the long window, by reason."""
    return names.rate(_QUARANTINED, names.settings.windows.long, level="source", kept=("reason",))


def requests(names: Names) -> Series:
    """Counted requests per second over the long window, per source."""
    return names.rate(USAGE["requests"], names.settings.windows.long, level="source")


def quarantined_share(names: Names) -> Series:
    """Share of usage records that could not be decided."""
    return names.series(
        "source",
        "prefix_cache_usage_quarantined_records_per_quarantined_records_plus_requests",
        f"ratio_rate{names.settings.windows.long}",
        "ratio",
    )


def all_quarantined(names: Names) -> Series:
    """Quarantined records per second over the long window, whatever the reason."""
    return names.rate(_QUARANTINED, names.settings.windows.long, level="source")


def lost(names: Names) -> Series:
    """Lost lines per second over the long window, by reason."""
    return names.rate(_LOST, names.settings.windows.long, level="source", kept=("reason",))


def all_lost(names: Names) -> Series:
    """Lost lines per second over the long window, whatever the reason."""
    return names.rate(_LOST, names.settings.windows.long, level="source")


def all_lines(names: Names) -> Series:
    """Log lines read per second over the long window, lost ones included."""
    return names.rate(_LINES, names.settings.windows.long, level="source")


def lost_share(names: Names) -> Series:
    """Share of log lines that gave no record though they should have."""
    operation = f"ratio_rate{names.settings.windows.long}"
    return names.series("source", "prefix_cache_usage_lost_lines_per_lines", operation, "ratio")


def weak_hashes(names: Names) -> Series:
    """Engines that cache prefixes under a hash that does not resist collisions on purpose, by hash."""
    return names.series("model", "prefix_cache_engine_weak_hashes", "count", kept=("hash_algorithm",))


def namespaces(names: Names) -> Series:
    """Trust groups seen with a model, while their series last."""
    return names.series("model", "prefix_cache_usage_namespaces", "count")


def records(names: Names) -> tuple[Record, ...]:
    """Rules of the exporter group."""
    settings = names.settings
    short, long = settings.windows.short, settings.windows.long

    def pods(id_: str, plane: str = "usage", *matchers: str) -> str:
        family = (USAGE if plane == "usage" else ENGINE)[id_]
        return queries.select(family.series_name, *matchers, settings.selector)

    source = names.labels("source")
    up = queries.select("up", f"job={queries.quoted(settings.job)}", settings.selector)
    stalled = queries.number(settings.thresholds.log_stalled.seconds)
    recent = f"time() - {pods('log_last_record_timestamp_seconds')} <= {stalled}"
    bad = names.rate(_QUARANTINED, short, level="source", kept=("reason",))
    gone = names.rate(_LOST, short, level="source", kept=("reason",))
    weak = f"hash_algorithm=~{queries.quoted(settings.trust.weak_hash)}"
    good = queries.total(source, names.rate(USAGE["requests"], long).name)
    groups = queries.by("count", (*names.labels("model"), "namespace"), pods("requests", "usage", 'namespace!=""'))
    return (
        Record(targets(names), queries.by("count", names.labels("job"), up)),
        Record(targets_up(names), queries.total(names.labels("job"), up)),
        Record(engines(names), queries.by("count", source, pods("up", "engine"))),
        Record(engines_up(names), queries.total(source, pods("up", "engine"))),
        Record(map_state(names), queries.total(map_state(names).labels, pods("map_state", "engine"))),
        Record(logs(names), queries.by("count", source, pods("log_readable"))),
        Record(logs_unreadable(names), queries.by("count", source, f"{pods('log_readable')} == 0")),
        Record(
            logs_stuck(names),
            queries.by("count", source, f"({pods('log_unread_bytes')} > 0) unless ({recent})"),
        ),
        Record(lines(names), queries.total(source, queries.rate(_LINES, short, settings.selector))),
        Record(bad, queries.total(bad.labels, queries.rate(_QUARANTINED, short, settings.selector))),
        rates.mean_over(names, bad, long),
        Record(all_quarantined(names), queries.total(source, quarantined(names).name)),
        Record(gone, queries.total(gone.labels, queries.rate(_LOST, short, settings.selector))),
        rates.mean_over(names, gone, long),
        Record(all_lost(names), queries.total(source, lost(names).name)),
        rates.mean_over(names, lines(names), long),
        Record(lost_share(names), queries.ratio(all_lost(names).name, all_lines(names).name)),
        Record(requests(names), good),
        *(
            Record(
                served(names, plane),
                queries.total(source, names.rate(family, short).name),
            )
            for plane, family in (("engine", ENGINE["prompt_tokens"]), ("usage", USAGE["requests"]))
        ),
        Record(
            quarantined_share(names),
            queries.ratio(
                all_quarantined(names).name, queries.known_sum(all_quarantined(names).name, requests(names).name)
            ),
        ),
        Record(
            weak_hashes(names),
            queries.by("count", weak_hashes(names).labels, pods("info", "engine", weak, 'prefix_caching!="off"')),
        ),
        Record(namespaces(names), queries.by("count", names.labels("model"), groups)),
    )
