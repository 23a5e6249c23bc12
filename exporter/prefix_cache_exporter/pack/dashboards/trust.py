"""Trust boundaries: who shares a cache with whom, and how safe is it?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.measures import ENGINE, USAGE
from prefix_cache_exporter.pack.alerts import dashboards as uids

from . import panels
from .board import Question, board
from .layout import Cell, Section
from .panels import BAD, GOOD, PLAIN, WARN, Column, Line
from .reading import Reader, ratio_of, summed
from .variables import release_variables

if TYPE_CHECKING:
    from prefix_cache_exporter.pack.names import Names

QUESTION = Question(uids.TRUST, "Trust boundaries", "Who shares a cache with whom, and how safe is it?", hours=24)
_BY = ("namespace",)
_UNNAMED = 'namespace=""'


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
    requests = USAGE["requests"]
    unnamed = summed((), reader.rated(requests, _UNNAMED))
    every = summed((), reader.rated(requests))
    share = f"({unnamed} or {every} * 0) / ({every} > 0)"
    lines = (
        Line(share, "share of requests without one", "ratio"),
        Line(f"{unnamed} or {every} * 0", "requests without one"),
        Line(every, "all requests"),
    )
    about = (
        "Requests that name no namespace divided by all requests (none is left out of the denominator). Nobody can say "
        "whose prefixes they reuse."
    )
    steps = ((None, GOOD), (0.01, WARN), (0.1, BAD))
    tile = panels.tile(
        "Without a namespace", lines, about, unit="requests/s", steps=((None, PLAIN),), orientation="vertical"
    )
    tile.overrides.append(
        {
            "matcher": {"id": "byFrameRefID", "options": "A"},
            "properties": [{"id": "thresholds", "value": panels.thresholds(steps)}],
        }
    )
    window = reader.names.settings.windows.long
    keys = ("source", "model", "namespace")
    columns = (
        Column("Source", label="source"),
        Column("Model", label="model"),
        Column("Namespace", label="namespace"),
        Column("Population ratio", reader.sides("usage_population_hit", keys, window).quotient, unit="ratio"),
        Column("Prompt tokens", reader.rate("usage", "prompt_tokens", keys, window), unit="tokens/s"),
        Column("Request hit ratio", reader.sides("usage_request_hit", keys, window).quotient, unit="ratio"),
        Column("Requests", reader.rate("usage", "reported_requests", keys, window), unit="requests/s"),
    )
    about = (
        f"Over {window}. Population ratio: cached over all prompt tokens; request hit ratio: requests with a hit "
        "over all "
        "requests. In the denominators, which stand beside: what reports cached tokens; not in them: what does not."
    )
    return (Cell(tile, 6, 8), Cell(panels.table("Namespaces", columns, about, sort="Prompt tokens"), 18, 8))


def _reuse(reader: Reader) -> tuple[Cell, ...]:
    cells = []
    for id_ in ("usage_population_hit", "usage_request_hit"):
        ratio = ratio_of(id_)
        lines = (Line(reader.sides(id_, _BY).quotient, "{{namespace}}"),)
        cells.append(
            Cell(panels.over_time(f"{ratio.title} by namespace", lines, panels.about_ratio(ratio), unit="ratio"), 8, 9)
        )
    lines = (Line(reader.rate("usage", "prompt_tokens", _BY), "{{namespace}}"),)
    about = "Prompt tokens per second of each namespace, the denominators of the population ratios beside."
    return (
        *cells,
        Cell(panels.over_time("Prompt tokens by namespace", lines, about, unit="tokens/s", stacked=True), 8, 9),
    )


def _separation(reader: Reader) -> tuple[Cell, ...]:
    weak = reader.raw(ENGINE["info"], f'hash_algorithm=~"{reader.names.settings.trust.weak_hash}"')
    keys = ("source", "model", "hash_algorithm")
    hashes = (
        Column("Source", label="source"),
        Column("Model", label="model"),
        Column("Hash algorithm", label="hash_algorithm"),
        Column("Engines", f"count by ({', '.join(keys)}) ({reader.raw(ENGINE['info'])})", width=90),
    )
    about_hashes = (
        "How engines hash block identities. Where several namespaces share an engine, a hash that can be made to "
        "collide can leak."
    )
    lines = (
        Line(
            f"count by (source, model) ({weak})",
            "{{source}} {{model}}",
        ),
    )
    about_weak = "Engines whose block hash is not cryptographic. Empty is good."
    sharing = (
        Line(
            f"count by (source, model) (count by (source, model, namespace) ({reader.raw(USAGE['requests'])}))",
            "{{source}} {{model}}",
        ),
    )
    about_sharing = (
        "Namespaces that share an engine or account. Sharing a cache is no boundary: give each namespace a cache "
        "salt of its own, set by "
        "a trusted gateway, or its own server."
    )
    return (
        Cell(panels.table("Hash algorithms", hashes, about_hashes), 10, 8),
        Cell(panels.over_time("Engines with a weak hash", lines, about_weak, unit="count"), 7, 8),
        Cell(panels.over_time("Namespaces that share an engine", sharing, about_sharing, unit="count"), 7, 8),
    )
