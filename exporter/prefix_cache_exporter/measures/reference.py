"""The catalogue as a page for people: `make generate` writes docs/METRICS.md from it, a test holds the file to it."""

from __future__ import annotations

import sys
from pathlib import Path

from prefix_cache_exporter import measures
from prefix_cache_exporter.measures import engine, exporter, usage

_HEAD = """\
# Metrics

<!-- Written by `make generate` from the catalogue of measures; change the catalogue instead of this page. -->

Counters only on the wire: ratios live in recording rules, dashboards, `report` and the status page, each summed first
and divided last. The two planes see the same requests and are never added.

Series of a family: the product of its labels' values, each bounded (`limits` in [CONFIGURATION.md](CONFIGURATION.md)).
What exceeds a bound goes to `other`, sums stay exact and an overflow counter moves.
"""
_PLANES = (
    (
        "Engine plane",
        "What a vLLM server's scheduler saw, read through the metric map of its version.",
        engine.FAMILIES,
    ),
    ("Usage plane", "What usage objects say, one per request.", usage.FAMILIES),
    ("Releases and health", "What is pinned together, and how the exporter itself does.", exporter.FAMILIES),
)


def render() -> str:
    """The whole page."""
    parts = [_HEAD, _ratios()]
    for title, about, families in _PLANES:
        rows = ["| name | kind | labels | what it is |", "|---|---|---|---|"]
        for family in families:
            labels = ", ".join(f"`{label}`" for label in family.labels)
            rows.append(f"| `{family.series_name}` | {family.kind} | {labels} | {family.help} |")
        parts.append(f"## {title}\n\n{about}\n\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def _ratios() -> str:
    rows = ["| ratio | numerator / denominator | in the denominator | not in it |", "|---|---|---|---|"]
    for ratio in measures.RATIOS:
        plane = measures.ENGINE if ratio.plane == "engine" else measures.USAGE
        sides = [
            " + ".join(f"`{plane[id_].series_name}`" for id_ in side) for side in (ratio.numerator, ratio.denominator)
        ]
        rows.append(f"| {ratio.title} | {sides[0]} / {sides[1]} | {ratio.counted} | {ratio.left_out} |")
    return "## Ratios\n\n" + "\n".join(rows) + "\n"


if __name__ == "__main__":  # pragma: no cover  # `make generate`; the test holds its output against the file
    Path(sys.argv[1]).write_text(render(), encoding="utf-8")
