"""Exporter health: does the exporter itself see everything?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.measures import ENGINE, EXPORTER, USAGE
from prefix_cache_exporter.pack.alerts import dashboards as uids
from prefix_cache_exporter.pack.records import exporter

from . import panels
from .board import Question, board
from .layout import Cell, Section
from .panels import BAD, GOOD, WARN, Column, Line
from .reading import Reader, summed
from .variables import by_label, datasource
from .wording import state_words

if TYPE_CHECKING:
    from prefix_cache_exporter.measures import Family
    from prefix_cache_exporter.pack.names import Names

QUESTION = Question(uids.EXPORTER, "Exporter health", "Does the exporter itself see everything?")


def make(names: Names) -> str:
    """The dashboard."""
    reader = Reader(names)
    sections = (
        Section("Exporters and engines", _up(reader)),
        Section("Polls of engines", _polls(reader)),
        Section("Logs", _logs(reader)),
        Section("State and bounds", _state(reader)),
    )
    variables = [datasource(), by_label(names, "source", ENGINE["up"], ())]
    variables[1].query = f'label_values({{__name__=~"{ENGINE["up"].name}|{USAGE["log_readable"].name}"}}, source)'
    return board(names, QUESTION, variables, sections, marks=False)


def _rate(reader: Reader, family: Family, by: tuple[str, ...], base: Family | None = None) -> str:
    """Rate of a count of bad things: 0 where its base is alive, absent where it is not."""
    expr = summed(by, reader.rated(family))
    return reader.zero_where(expr, reader.rated(base), by[-1] if by else "source") if base else expr


def _up(reader: Reader) -> tuple[Cell, ...]:
    names = reader.names
    targets, answering = (reader.recorded(one(names)) for one in (exporter.targets, exporter.targets_up))
    steps = ((None, BAD), (1, GOOD))
    lines = (
        Line(f"sum({answering}) / (sum({targets}) > 0)", "share that answers", "ratio"),
        Line(f"sum({answering})", "answer"),
        Line(f"sum({targets})", "are known to Prometheus"),
    )
    about = (
        "Exporters that answered the last scrape divided by all that Prometheus knows (none is left out of the "
        "denominator)."
    )
    states = (
        Column("Source", label="source"),
        Column("Map state", label="state", mappings=(panels.value_map(state_words()),)),
        Column("Pods", f"sum by (source, state) ({reader.raw(ENGINE['map_state'])}) > 0", width=70),
    )
    mismatches = (
        Line(_rate(reader, ENGINE["map_mismatches"], ("source", "reason"), ENGINE["polls"]), "{{source}} {{reason}}"),
    )
    about_mismatch = "Polls per second whose page contradicted the map, by reason; 0 where pages are polled and agree."
    tile = panels.tile("Exporters", lines, about, unit="count", steps=((None, "text"),), orientation="vertical")
    tile.overrides.append(
        {
            "matcher": {"id": "byFrameRefID", "options": "A"},
            "properties": [{"id": "thresholds", "value": panels.thresholds(steps)}],
        }
    )
    return (
        Cell(tile, 5, 8),
        Cell(panels.table("Metric maps", states, "Whether pages and maps agree, by source."), 10, 8),
        Cell(
            panels.over_time("Map mismatches", mismatches, about_mismatch, unit="per second"),
            9,
            8,
        ),
    )


def _polls(reader: Reader) -> tuple[Cell, ...]:
    errors = (
        Line(_rate(reader, ENGINE["poll_errors"], ("source", "reason"), ENGINE["polls"]), "{{source}} {{reason}}"),
    )
    duration = (Line(f"max by (source) ({reader.raw(ENGINE['poll_duration_seconds'])})", "{{source}}"),)
    age = (Line(f"time() - min by (source) ({reader.raw(ENGINE['last_success_timestamp_seconds'])})", "{{source}}"),)
    odd = (
        Line(_rate(reader, ENGINE["restarts"], ("source",), ENGINE["polls"]), "restarts of {{source}}"),
        Line(_rate(reader, ENGINE["anomalies"], ("source", "reason"), ENGINE["polls"]), "{{source}} {{reason}}"),
    )
    return (
        Cell(
            panels.over_time(
                "Poll errors",
                errors,
                "Polls per second that gave no page, by reason.",
                unit="per second",
            ),
            6,
            8,
        ),
        Cell(
            panels.over_time(
                "Slowest poll", duration, "Duration of the last poll, the slowest pod of each source.", unit="seconds"
            ),
            6,
            8,
        ),
        Cell(
            panels.over_time(
                "Age of the last page",
                age,
                "Time since the last whole page, the oldest pod of each source.",
                unit="seconds",
            ),
            6,
            8,
        ),
        Cell(
            panels.over_time(
                "Restarts and increases not believed",
                odd,
                "Engine restarts recognised, and increases that were not counted, by reason.",
                unit="per second",
            ),
            6,
            8,
        ),
    )


def _logs(reader: Reader) -> tuple[Cell, ...]:
    unread = (Line(f"sum by (source) ({reader.raw(USAGE['log_unread_bytes'])})", "{{source}}"),)
    age = (Line(f"time() - max by (source) ({reader.raw(USAGE['log_last_record_timestamp_seconds'])})", "{{source}}"),)
    lines = (Line(reader.recorded(reader.names.rate(USAGE["lines"], reader.short, level="source")), "{{source}}"),)
    losses = (
        Line(_rate(reader, USAGE["lost_lines"], ("source", "reason"), USAGE["lines"]), "{{source}} line: {{reason}}"),
        Line(_rate(reader, USAGE["lost_files"], ("source", "reason"), USAGE["lines"]), "{{source}} file: {{reason}}"),
        Line(
            _rate(reader, USAGE["quarantined_records"], ("source", "reason"), USAGE["lines"]),
            "{{source}} record: {{reason}}",
        ),
    )
    repeats = (
        Line(_rate(reader, USAGE["duplicate_records"], ("source",), USAGE["lines"]), "{{source}} duplicates"),
        Line(
            _rate(reader, USAGE["skewed_records"], ("source", "direction"), USAGE["lines"]),
            "{{source}} clock {{direction}}",
        ),
        Line(_rate(reader, USAGE["anomalies"], ("source", "kind"), USAGE["lines"]), "{{source}} {{kind}}"),
    )
    open_ = (Line(f"sum by (source) ({reader.raw(USAGE['open_records'])})", "{{source}}"),)
    return (
        Cell(panels.over_time("Lines read", lines, "Log lines per second.", unit="per second"), 8, 8),
        Cell(
            panels.over_time("Bytes not yet read", unread, "How far the exporter lags behind its logs.", unit="bytes"),
            8,
            8,
        ),
        Cell(
            panels.over_time(
                "Time since the last record", age, "A log that stands still, or an exporter that does.", unit="seconds"
            ),
            8,
            8,
        ),
        Cell(
            panels.over_time(
                "Losses by reason",
                losses,
                "Lines, files and records that were lost; 0 where logs are read and nothing is.",
                unit="per second",
            ),
            8,
            8,
        ),
        Cell(
            panels.over_time(
                "Oddities",
                repeats,
                "Repeats ignored, clocks that disagree, records that are odd but counted.",
                unit="per second",
            ),
            8,
            8,
        ),
        Cell(
            panels.over_time(
                "Records still merging", open_, "Records that wait for further lines with their id.", unit="count"
            ),
            8,
            8,
        ),
    )


def _state(reader: Reader) -> tuple[Cell, ...]:
    family = EXPORTER
    failures = (
        Line(_rate(reader, family["state_write_failures"], (), family["state_writes"]), "failed"),
        Line(_rate(reader, family["state_writes"], ()), "written"),
    )
    overflow = (
        Line(_rate(reader, family["label_overflow"], ("label",), family["state_writes"]), "label {{label}}"),
        Line(_rate(reader, family["series_overflow"], ("family",), family["state_writes"]), "family {{family}}"),
    )
    series = (Line(f"max({reader.raw(family['series'])})", "series of the largest exporter"),)
    internal = (Line(_rate(reader, family["internal_errors"], ("worker",), family["state_writes"]), "{{worker}}"),)
    reload = (
        Line(f"min({reader.raw(family['config_last_reload_successful'])})", "configuration"),
        Line(f"min({reader.raw(family['release_file_valid'])})", "release file"),
    )
    mapping = panels.value_map({"1": ("in force", GOOD), "0": ("refused, old one stands", WARN)})
    tile = panels.tile(
        "Last reload",
        reload,
        "Whether the last reload of configuration and release file was taken, on every pod.",
        unit="count",
        steps=((None, WARN), (1, GOOD)),
        mappings=(mapping,),
    )
    return (
        Cell(
            panels.over_time(
                "State transactions",
                failures,
                "Transactions per second written to the state file, and those the disk refused.",
                unit="per second",
            ),
            6,
            8,
        ),
        Cell(
            panels.over_time(
                "Increments that went to `other`",
                overflow,
                "Label values and series beyond their bounds. Sums stay exact; names are lost.",
                unit="per second",
            ),
            6,
            8,
        ),
        Cell(panels.over_time("Ledger series", series, "Series held by the largest exporter.", unit="count"), 4, 8),
        Cell(
            panels.over_time(
                "Errors of the exporter itself",
                internal,
                "Errors that a worker survived.",
                unit="per second",
            ),
            4,
            8,
        ),
        Cell(tile, 4, 8),
    )
