"""What a reader needs from a panel: words, units, both sides of a ratio, nothing where there is nothing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from prefix_cache_exporter.pack.dashboards.layout import COLUMNS
from prefix_cache_exporter.pack.dashboards.panels import NO_TRAFFIC, NOTHING

from .document import name, panels, queries, selectors

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .document import Json

_PLANES = ("prefix_cache_engine_", "prefix_cache_usage_")


def waits_enough(dashboard: Json) -> Iterator[tuple[str, str]]:
    """`$__rate_interval` is four times the query's own step, and the data source's guess where it has none."""
    for panel in panels(dashboard):
        for target in panel.get("targets", ()):
            if "$__rate_interval" in target.get("expr", "") and not target.get("interval"):
                yield name(panel), "a rate interval that depends on the data source's settings"


def reads_named(dashboard: Json) -> Iterator[tuple[str, str]]:
    """Descriptions end with the names that the panel reads."""
    for panel in panels(dashboard):
        read = {node.name for target in panel.get("targets", ()) for node in selectors(target["expr"])}
        last = panel.get("description", "").rpartition("\n\n")[2]
        for series in sorted(read):
            if f"`{series}`" not in last or not last.startswith("Reads "):
                yield name(panel), f"its description does not end with {series}"


def sides_named(dashboard: Json) -> Iterator[tuple[str, str]]:
    """A panel with a division says what is in the denominator and what is not."""
    for panel in panels(dashboard):
        text = panel.get("description", "").lower()
        divides = any(" / (" in target.get("expr", "") for target in panel.get("targets", ()))
        recorded = any("_per_" in target.get("expr", "") for target in panel.get("targets", ()))
        if (divides or recorded) and not (
            "denominator" in text and re.search(r"not in (?:it|them)|left out|neither", text)
        ):
            yield name(panel), "a ratio whose description does not say what is in its denominator and what is not"


def says_no_traffic(dashboard: Json) -> Iterator[tuple[str, str]]:
    """Where there is nothing, a panel says so."""
    for panel in panels(dashboard):
        text = panel.get("fieldConfig", {}).get("defaults", {}).get("noValue")
        if text not in {NO_TRAFFIC, NOTHING} or (text == NOTHING) != (
            "Empty is good" in panel["description"] and panel["type"] == "table"
        ):
            yield name(panel), f"says {text!r} where there is nothing"


def planes_apart(dashboard: Json) -> Iterator[tuple[str, str]]:
    """Both planes see the same requests: no query reads both."""
    for where, expr in queries(dashboard):
        if all(plane in expr for plane in _PLANES) and "__name__" not in expr:
            yield where, "reads both planes at once"


def quiet_quantiles(dashboard: Json) -> Iterator[tuple[str, str]]:
    """A quantile of nothing is absent, not NaN; a count of nothing is no constant."""
    for where, expr in queries(dashboard):
        if "histogram_quantile" in expr and not re.search(r"\) and \(.*> 0\)", expr, re.DOTALL):
            yield where, "a quantile without a guard: NaN where nothing was observed"
        if "vector(0)" in expr:
            yield where, "vector(0): 0 also where the metric is missing"


def fits(dashboard: Json) -> Iterator[tuple[str, str]]:
    """Panels lie in the grid side by side, none over another."""
    taken: dict[tuple[int, int], str] = {}
    ids: set[int] = set()
    for panel in panels(dashboard):
        if panel["id"] in ids:
            yield name(panel), "an id that another panel has"
        ids.add(panel["id"])
        place = panel["gridPos"]
        for cell in _cells(place):
            if cell in taken or cell[0] >= COLUMNS:
                yield name(panel), f"overlaps {taken.get(cell, 'the edge')}"
                break
        taken |= dict.fromkeys(_cells(place), name(panel))


def _cells(place: Mapping[str, int]) -> list[tuple[int, int]]:
    rows, columns = range(place["y"], place["y"] + place["h"]), range(place["x"], place["x"] + place["w"])
    return [(column, row) for row in rows for column in columns]
