"""Trust boundaries: who shares a cache with whom, and how safe is it?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.measures import ENGINE, USAGE
from prefix_cache_exporter.pack import queries
from prefix_cache_exporter.pack.alerts import dashboards as uids
from prefix_cache_exporter.pack.records import exporter

from . import panels
from .board import Question, board
from .layout import Cell, Section
from .panels import BAD, GOOD, WARN, Column, Line
from .reading import Reader, ratio_of, summed
from .variables import release_variables

if TYPE_CHECKING:
    from prefix_cache_exporter.pack.names import Names

QUESTION = Question(uids.TRUST, "Trust boundaries", "Who shares a cache with whom, and how safe is it?", hours=24)
_BY = ("namespace",)
_NAMED = 'namespace!=""'
_REQUESTS = ("reported_requests", "unreported_requests")


def make(names: Names) -> str:
    """The dashboard."""
    reader = Reader(names, namespaces=True)
    sections = (
        Section("Namespaces now", _now(reader)),
        Section("Reuse within each namespace", _reuse(reader)),
        Section("What separates them", _separation(reader)),
    )
    return board(names, QUESTION, release_variables(names, USAGE["requests"], namespaces=True), sections)


def _now(reader: Reader) -> tuple[Cell, ...]:
    every = queries.known_sum(*(reader.rate("usage", id_) for id_ in _REQUESTS))
    named = queries.known_sum(*(summed((), reader.each("usage", id_, None, _NAMED)) for id_ in _REQUESTS))
    unnamed = f"{queries.grouped(every)} - ({named} or {queries.grouped(every)} * 0)"
    about = (
        "Requests that name no namespace divided by all requests (in the denominator: every request; nothing is left "
        "out). Nobody can say whose prefixes they reuse."
    )
    without, of_all = (unnamed, "without one"), (every, "of all")
    steps = ((None, GOOD), (0.01, WARN), (0.1, BAD))
    tile = panels.part_tile("Requests without a namespace", without, of_all, about, unit="requests/s", steps=steps)
    window = reader.names.settings.windows.long
    keys = ("source", "model", "namespace")
    columns = (
        Column("Source", label="source"),
        Column("Model", label="model"),
        Column("Namespace", label="namespace"),
        Column("Population hit", reader.sides("usage_population_hit", keys, window).quotient, unit="ratio"),
        Column("Prompt tokens", reader.rate("usage", "prompt_tokens", keys, window), unit="tokens/s"),
        Column("Request hit", reader.sides("usage_request_hit", keys, window).quotient, unit="ratio"),
        Column("Requests", reader.rate("usage", "reported_requests", keys, window), unit="requests/s"),
    )
    about = (
        f"Over {window}. Population hit: cached over all prompt tokens; request hit: requests with a hit over all "
        "requests. In the denominators, which stand beside: what reports cached tokens; not in them: what does not."
    )
    return (
        Cell(tile, 8, 8),
        Cell(panels.table("Namespaces", columns, about, sort=("Prompt tokens",)), 16, 8),
    )


def _reuse(reader: Reader) -> tuple[Cell, ...]:
    cells = []
    for id_ in ("usage_population_hit", "usage_request_hit"):
        ratio = ratio_of(id_)
        lines = (Line(_shown(reader.sides(id_, _BY).quotient), "{{namespace}}"),)
        cells.append(
            Cell(panels.over_time(f"{ratio.title} by namespace", lines, panels.about_ratio(ratio), unit="ratio"), 8, 9)
        )
    lines = (Line(_shown(reader.rate("usage", "prompt_tokens", _BY)), "{{namespace}}"),)
    about = "Prompt tokens per second of each namespace, the denominators of the population ratios beside."
    return (
        *cells,
        Cell(panels.over_time("Prompt tokens by namespace", lines, about, unit="tokens/s", stacked=True), 8, 9),
    )


def _shown(expr: str) -> str:
    """An empty namespace by a name: Grafana calls a line without one `Value`."""
    return f'label_replace({expr}, "namespace", "(none)", "namespace", "")'


def _separation(reader: Reader) -> tuple[Cell, ...]:
    weak = reader.recorded(exporter.weak_hashes(reader.names))
    keys = ("source", "model", "hash_algorithm", "prefix_caching")
    hashes = (
        Column("Source", label="source"),
        Column("Model", label="model"),
        Column("Prefix caching", label="prefix_caching"),
        Column("Hash algorithm", label="hash_algorithm"),
        Column("Engines", f"count by ({', '.join(keys)}) ({reader.raw(ENGINE['info'])})", width=90),
    )
    about_hashes = (
        "How engines hash block identities. Where several namespaces share an engine, a hash that can be made to "
        "collide can leak."
    )
    weak_lines = (
        Line(summed(("source", "model", "hash_algorithm"), weak), "{{hash_algorithm}}: {{model}} ({{source}})"),
    )
    about_weak = "Engines that cache under a hash that is not cryptographic. Empty is good."
    sharing = (
        Line(
            queries.by("max", ("source", "model"), reader.recorded(exporter.namespaces(reader.names))),
            "{{model}} ({{source}})",
        ),
    )
    about_sharing = (
        "Namespaces that share a model of one source, and so its cache. Sharing a cache is no boundary: give each "
        "namespace a cache salt of its own, set by a trusted gateway, or its own server."
    )
    return (
        Cell(panels.table("Hash algorithms", hashes, about_hashes), 10, 7),
        Cell(panels.over_time("Engines with a weak hash", weak_lines, about_weak, unit="whole"), 7, 7),
        Cell(panels.over_time("Namespaces that share a cache", sharing, about_sharing, unit="whole"), 7, 7),
    )
