"""Exporter health: does the exporter itself see everything?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.measures import ENGINE, EXPORTER, USAGE
from prefix_cache_exporter.pack import queries
from prefix_cache_exporter.pack.alerts import dashboards as uids
from prefix_cache_exporter.pack.records import exporter

from . import panels
from .board import Question, board
from .layout import Cell, Section
from .panels import BAD, GOOD, WARN, Column, Line
from .reading import Reader, hourly, summed
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
    either = queries.select(
        "", f'__name__=~"{ENGINE["up"].name}|{USAGE["log_readable"].name}"', names.settings.selector
    )
    variables[1].query = f"label_values({either}, source)"
    return board(names, QUESTION, variables, sections, marks=None)


def _hourly(reader: Reader, family: Family, by: tuple[str, ...], alive: str) -> str:
    """A count of bad things per hour: 0 where there is a rate of what goes on beside it, absent where there is none."""
    return hourly(reader.zero_where(summed(by, reader.rated(family)), alive, by[-1]))


def _recorded(reader: Reader, id_: str) -> str:
    """The same of what a rule records by source and reason."""
    by = ("source", "reason")
    series = reader.names.rate(USAGE[id_], reader.short, level="source", kept=("reason",))
    return hourly(reader.zero_where(summed(by, reader.recorded(series)), reader.lines(), "reason"))


def _up(reader: Reader) -> tuple[Cell, ...]:
    names = reader.names
    known, answering = (summed((), reader.recorded(one(names))) for one in (exporter.targets, exporter.targets_up))
    about = (
        "Exporters that answered the last scrape divided by all that Prometheus knows (in the denominator: every "
        "target of the job; nothing is left out)."
    )
    answer, of_known = (answering, "answer"), (known, "of known")
    steps = ((None, BAD), (1, GOOD))
    tile = panels.part_tile("Exporters that answer", answer, of_known, about, unit="count", steps=steps)
    states = (
        Column("Source", label="source", width=140),
        Column("Whether page and map agree", label="state", mappings=(panels.value_map(state_words()),), wrapped=True),
        Column("Engines", f"{summed(('source', 'state'), reader.recorded(exporter.map_state(names)))} > 0", width=80),
    )
    wrong = _hourly(reader, ENGINE["map_mismatches"], ("source", "reason"), reader.rated(ENGINE["polls"]))
    about_wrong = "Polls per hour whose page contradicted the map, by reason; 0 where pages are polled and agree."
    mismatches = (Line(wrong, "{{source}} {{reason}}"),)
    return (
        Cell(tile, 6, 6),
        Cell(panels.table("Metric maps", states, "Whether pages and maps agree, by source."), 10, 6),
        Cell(panels.over_time("Map mismatches", mismatches, about_wrong, unit="per hour"), 8, 6),
    )


def _polls(reader: Reader) -> tuple[Cell, ...]:
    errors = (
        Line(
            _hourly(reader, ENGINE["poll_errors"], ("source", "reason"), reader.rated(ENGINE["polls"])),
            "{{source}} {{reason}}",
        ),
    )
    duration = (Line(f"max by (source) ({reader.raw(ENGINE['poll_duration_seconds'])})", "{{source}}"),)
    age = (Line(f"time() - min by (source) ({reader.raw(ENGINE['last_success_timestamp_seconds'])})", "{{source}}"),)
    odd = (
        Line(_hourly(reader, ENGINE["restarts"], ("source",), reader.rated(ENGINE["polls"])), "restarts of {{source}}"),
        Line(
            _hourly(reader, ENGINE["anomalies"], ("source", "reason"), reader.rated(ENGINE["polls"])),
            "{{source}} {{reason}}",
        ),
    )
    about_errors = "Polls per hour that gave no page, by reason; 0 where engines are polled."
    about_slowest = "Duration of the last poll, the slowest pod of each source."
    about_age = "Time since the last whole page, the oldest pod of each source."
    about_odd = "Engine restarts recognised, and increases that were not counted, per hour, by reason."
    return (
        Cell(panels.over_time("Poll errors", errors, about_errors, unit="per hour"), 6, 7),
        Cell(panels.over_time("Slowest poll", duration, about_slowest, unit="seconds"), 6, 7),
        Cell(panels.over_time("Age of the last page", age, about_age, unit="seconds"), 6, 7),
        Cell(panels.over_time("Restarts and increases not believed", odd, about_odd, unit="per hour"), 6, 7),
    )


def _logs(reader: Reader) -> tuple[Cell, ...]:
    unread = (Line(f"sum by (source) ({reader.raw(USAGE['log_unread_bytes'])})", "{{source}}"),)
    age = (Line(f"time() - max by (source) ({reader.raw(USAGE['log_last_record_timestamp_seconds'])})", "{{source}}"),)
    lines = (Line(reader.lines(), "{{source}}"),)
    losses = (
        Line(_recorded(reader, "lost_lines"), "{{source}} line: {{reason}}"),
        Line(_hourly(reader, USAGE["lost_files"], ("source", "reason"), reader.lines()), "{{source}} file: {{reason}}"),
        Line(_recorded(reader, "quarantined_records"), "{{source}} record: {{reason}}"),
    )
    repeats = (
        Line(_hourly(reader, USAGE["duplicate_records"], ("source",), reader.lines()), "{{source}} duplicates"),
        Line(
            _hourly(reader, USAGE["skewed_records"], ("source", "direction"), reader.lines()),
            "{{source}} clock {{direction}}",
        ),
        Line(_hourly(reader, USAGE["anomalies"], ("source", "kind"), reader.lines()), "{{source}} {{kind}}"),
    )
    waiting = (Line(summed(("source",), reader.raw(USAGE["open_records"])), "{{source}}"),)
    about_unread = "How far the exporter lags behind its logs."
    about_age = "A log that stands still, or an exporter that does."
    about_waiting = "Records that wait for further lines with their id."
    about_losses = "Lines, files and records lost per hour; 0 where logs are read and nothing is."
    about_repeats = "Repeats ignored, clocks that disagree, records that are odd but counted; per hour."
    return (
        Cell(panels.over_time("Lines read", lines, "Log lines per second.", unit="per second"), 6, 7),
        Cell(panels.over_time("Bytes not yet read", unread, about_unread, unit="bytes"), 6, 7),
        Cell(panels.over_time("Time since the last record", age, about_age, unit="seconds"), 6, 7),
        Cell(panels.over_time("Records still merging", waiting, about_waiting, unit="whole"), 6, 7),
        Cell(panels.over_time("Losses by reason", losses, about_losses, unit="per hour"), 12, 8),
        Cell(panels.over_time("Oddities", repeats, about_repeats, unit="per hour"), 12, 8),
    )


def _state(reader: Reader) -> tuple[Cell, ...]:
    family = EXPORTER
    alive = reader.rated(family["state_writes"])
    failures = (
        Line(_hourly(reader, family["state_write_failures"], ("job",), alive), "failed"),
        Line(_hourly(reader, family["state_set_aside"], ("job",), alive), "files set aside"),
    )
    writes = (Line(summed((), alive), "transactions"),)
    overflow = (
        Line(_hourly(reader, family["label_overflow"], ("label",), alive), "label {{label}}"),
        Line(_hourly(reader, family["series_overflow"], ("family",), alive), "family {{family}}"),
    )
    series = (Line(f"max({reader.raw(family['series'])})", "series of the largest exporter"),)
    internal = (Line(_hourly(reader, family["internal_errors"], ("worker",), alive), "{{worker}}"),)
    reload = (
        Line(f"min({reader.raw(family['config_last_reload_successful'])})", "configuration"),
        Line(f"min({reader.raw(family['release_file_valid'])})", "release file"),
    )
    mapping = panels.value_map({"1": ("in force", GOOD), "0": ("refused, old one stands", WARN)})
    steps = ((None, WARN), (1, GOOD))
    about = "Whether the last reload of configuration and release file was taken, on every pod."
    tile = panels.tile("Last reload", reload, about, unit="count", steps=steps, mappings=(mapping,))
    about_failures = (
        "Transactions per hour that the disk refused, and state files that could not be read and were set aside."
    )
    about_overflow = "Label values and series beyond their bounds, per hour. Sums stay exact; names are lost."
    about_internal = "Errors per hour that a worker of the exporter survived."
    about_writes = "Transactions per second written to the state file: one for each batch of changes."
    about_series = "Series held by the largest exporter."
    return (
        Cell(panels.over_time("State transactions", writes, about_writes, unit="per second"), 8, 7),
        Cell(panels.over_time("State failures", failures, about_failures, unit="per hour"), 8, 7),
        Cell(tile, 8, 7),
        Cell(panels.over_time("Increments that went to other", overflow, about_overflow, unit="per hour"), 8, 7),
        Cell(panels.over_time("Ledger series", series, about_series, unit="whole"), 8, 7),
        Cell(panels.over_time("Errors of the exporter itself", internal, about_internal, unit="per hour"), 8, 7),
    )
