"""Overview: is reuse healthy now, and for which model and template revision?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.pack import queries
from prefix_cache_exporter.pack.alerts import dashboards as uids
from prefix_cache_exporter.pack.records import exporter, releases

from . import panels
from .board import Question, board
from .layout import Cell, Section
from .panels import BAD, GOOD, PLAIN, WARN, Column, Line
from .reading import Reader, ratio_of, summed
from .shapes import query_override
from .variables import release_variables

if TYPE_CHECKING:
    from prefix_cache_exporter.pack.names import Names

    from .shapes import Visual

QUESTION = Question(uids.OVERVIEW, "Overview", "Is reuse healthy now, for which model and template revision?")
_NEUTRAL = ((None, PLAIN),)
_COVERAGE = ((None, BAD), (0.5, WARN), (0.9, GOOD))
_COST = ((None, GOOD), (0.9, WARN), (1.0, BAD))
_BY = ("model", "template", "template_revision")
_FIRING = (
    "count by (alertname, severity, source, template, template_revision) "
    '(ALERTS{alertstate="firing", alertname=~"PrefixCache.*"})'
)
TILES = (
    ("engine_population_hit", _NEUTRAL),
    ("usage_population_hit", _NEUTRAL),
    ("usage_eligible_prefix", _NEUTRAL),
    ("usage_request_hit", _NEUTRAL),
    ("usage_net_input_cost", _COST),
    ("usage_request_coverage", _COVERAGE),
)
"""The ratios of now. Blue is no judgement: what is high depends on the prompts; alerts compare with a baseline."""


def make(names: Names) -> str:
    """The dashboard."""
    reader = Reader(names)
    now = Section("Now: each ratio with both of its sides", tuple(_tile(reader, id_, steps) for id_, steps in TILES))
    which = Section("Which template revision", (*_lines(reader), Cell(_revisions(reader), 24, 9)))
    trouble = Section("What needs a look", (Cell(_alerts(), 14, 6), Cell(_sources(reader), 10, 6)))
    return board(names, QUESTION, release_variables(names), (now, trouble, which))


def _tile(reader: Reader, id_: str, steps: tuple[tuple[float | None, str], ...]) -> Cell:
    return Cell(panels.ratio_tile(ratio_of(id_), reader.sides(id_), steps), 8, 4)


def _lines(reader: Reader) -> tuple[Cell, ...]:
    cells = []
    for plane, id_ in (("engine", "engine_population_hit"), ("usage", "usage_population_hit")):
        ratio, now, expected = ratio_of(id_), reader.ratio(id_), reader.derived(id_, "ratio_expected")
        lines = (
            Line(now, "{{template}} {{template_revision}} ({{model}}, {{source}})"),
            # Only beside a ratio: a source that has no engine is promised nothing there.
            Line(f"{expected} and {now}", "expected of {{template}} {{template_revision}} ({{model}}, {{source}})"),
        )
        about = (
            f"{panels.about_ratio(ratio)} Dashed: what a revision should reach once warm, which is its release's "
            "prediction or else the best daily median that the template had when the revision was born."
        )
        title = f"Population hit ratio, {plane} plane (dashed: expected)"
        panel = panels.over_time(title, lines, about, unit="ratio", overrides=(_dashed("B"),))
        cells.append(Cell(panel, 12, 9))
    effectiveness = ratio_of("usage_eligible_prefix")
    one = Line(reader.ratio(effectiveness.id), "{{template}} {{template_revision}} ({{model}}, {{source}})")
    panel = panels.over_time(effectiveness.title, (one,), panels.about_ratio(effectiveness), unit="ratio")
    traffic = (
        Line(reader.rate("engine", "prompt_tokens", _BY), "engine: {{template}} {{template_revision}} ({{model}})"),
        Line(reader.rate("usage", "prompt_tokens", _BY), "usage: {{template}} {{template_revision}} ({{model}})"),
    )
    about = "Prompt tokens per second, the denominators of both planes. They see the same requests: never add them."
    return (
        *cells,
        Cell(panel, 12, 10),
        Cell(panels.over_time("Prompt tokens", traffic, about, unit="tokens/s"), 12, 10),
    )


def _revisions(reader: Reader) -> Visual:
    keys = ("source", "model", "template", "template_revision")
    window = reader.names.settings.windows.long

    def grouped(expr: str) -> str:
        return queries.by("max", keys, expr)

    engine = queries.grouped(reader.sides("engine_population_hit", keys, window).quotient)
    expected = grouped(reader.derived("engine_population_hit", "ratio_expected"))
    columns = (
        Column("Source", label="source"),
        Column("Model", label="model"),
        Column("Template", label="template"),
        Column("Revision", label="template_revision"),
        Column(
            "First traffic",
            grouped(f"{reader.recorded(releases.first_traffic(reader.names))} * 1000"),
            unit="timestamp",
        ),
        Column("Engine hit", engine, unit="ratio"),
        Column("Engine in", reader.rate("engine", "prompt_tokens", keys, window), unit="tokens/s"),
        Column("Expected", f"{expected} and {engine}", unit="ratio"),
        Column("Usage hit", reader.sides("usage_population_hit", keys, window).quotient, unit="ratio"),
        Column("Usage in", reader.rate("usage", "prompt_tokens", keys, window), unit="tokens/s"),
        Column("Effective", reader.sides("usage_eligible_prefix", keys, window).quotient, unit="ratio"),
        Column("Eligible", reader.rate("usage", "eligible_tokens", keys, window), unit="tokens/s"),
    )
    about = (
        f"Template revisions with traffic, over the last {window}. Engine and usage hit: cached over all prompt tokens "
        "of each plane (in the denominator: every prompt token whose cached share is known; not in it: those of which "
        "it cannot be known). Effective: cached over eligible prefix tokens (not in it: tokens that nobody could "
        "have reused). The denominator stands beside each. Expected: what the engine's ratio should be once warm."
    )
    return panels.table("Revisions side by side", columns, about, sort=("First traffic",))


def _alerts() -> Visual:
    severities = panels.value_map(
        {"critical": ("critical", BAD), "warning": ("warning", WARN), "info": ("info", "text")}
    )
    columns = (
        Column("Alert", label="alertname", width=370),
        Column("Severity", label="severity", width=90, mappings=(severities,)),
        Column("Template", label="template"),
        Column("Revision", label="template_revision"),
        Column("Source", label="source"),
        Column("Alerts", _FIRING, width=70),
    )
    about = "Alerts of this pack that fire now. Empty is good."
    return panels.table("Firing alerts", columns, about, empty=panels.NOTHING)


def _sources(reader: Reader) -> Visual:
    names, by = reader.names, ("source",)
    up, known = (summed(by, reader.recorded(one(names))) for one in (exporter.engines_up, exporter.engines))
    columns = (
        Column("Source", label="source"),
        Column("Share up", queries.ratio(up, known), unit="ratio", steps=((None, BAD), (1, GOOD))),
        Column("Up", up),
        Column("Polled", known),
    )
    about = (
        "Engines whose last poll gave a whole page, divided by all engines polled (in the denominator: every engine "
        "that is configured; nothing is left out)."
    )
    return panels.table("Engines up", columns, about)


def _dashed(ref: str) -> dict[str, object]:
    """Grey, dashed and not in the legend, which names the revisions already."""
    return query_override(
        ref,
        ("custom.lineStyle", {"fill": "dash", "dash": [8, 6]}),
        ("custom.lineWidth", 1),
        ("custom.hideFrom", {"legend": True, "tooltip": False, "viz": False}),
        panels.PLAIN_TEXT,
    )
