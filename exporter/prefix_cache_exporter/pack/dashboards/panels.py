"""Panels as people ask for them: a ratio with both sides, rates over time, a table of now, a heatmap.

A panel knows what it reads: its description ends with those names, and for a ratio says what is in the denominator and
what is not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from prefix_cache_exporter import measures
from prefix_cache_exporter.pack import queries

from .shapes import Query, Visual, query_override, value_override

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from prefix_cache_exporter.measures import Ratio

NO_TRAFFIC = "No traffic"
UNITS = {
    "ratio": "percentunit",
    "tokens": "short",
    "tokens/s": "si:tok/s",
    "requests/s": "reqps",
    "seconds": "s",
    "bytes": "decbytes",
    "count": "short",
    "timestamp": "dateTimeFromNow",
    "currency/h": "suffix: /h",
    "currency": "short",
    "per second": "suffix: /s",
}
"""What a number is, as Grafana's unit ids. Every panel has one."""
_NAME = re.compile(r"\b(?:[a-z_]+:)?prefix_cache_[a-z0-9_]+(?::[a-z0-9_]+)?|\bALERTS\b")
GOOD, WARN, BAD, PLAIN = "green", "orange", "red", "blue"


@dataclass(frozen=True, slots=True)
class Line:
    """One query and how its result is called.

    Attributes:
        expr: PromQL.
        legend: legend format; `{{label}}` stands for a label.
        unit: key of `UNITS`, where it differs from the panel's.
    """

    expr: str
    legend: str = "__auto"
    unit: str | None = None


def tile(
    title: str,
    lines: Sequence[Line],
    about: str,
    *,
    unit: str,
    steps: Sequence[tuple[float | None, str]] = ((None, PLAIN),),
    decimals: int | None = None,
    mappings: Sequence[Mapping[str, Any]] = (),
    orientation: str = "auto",
) -> Visual:
    """Numbers of now."""
    options = {
        "colorMode": "value",
        "graphMode": "none",
        "justifyMode": "auto",
        "orientation": orientation,
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "textMode": "value_and_name" if len(lines) > 1 else "auto",
        "wideLayout": True,
    }
    defaults: dict[str, Any] = {
        "unit": UNITS[unit],
        "noValue": NO_TRAFFIC,
        "color": {"mode": "thresholds"},
        "thresholds": thresholds(steps),
        "mappings": list(mappings),
    }
    if decimals is not None:
        defaults["decimals"] = decimals
    targets = _targets(lines, instant=True)
    return _visual("stat", title, targets, about, options=options, defaults=defaults, overrides=_units(lines, unit))


def ratio_tile(
    ratio: Ratio, quotient: str, numerator: str, denominator: str, steps: Sequence[tuple[float | None, str]]
) -> Visual:
    """A ratio of now with its numerator and denominator beside it."""
    unit = sides_unit(ratio)
    scale = 3600 if unit == "currency/h" else 1
    per_hour = f" * {scale}" if scale > 1 else ""
    lines = (
        Line(quotient, "ratio"),
        Line(f"{queries.grouped(numerator)}{per_hour}", _side(ratio.numerator), unit),
        Line(
            f"{queries.grouped(denominator)}{per_hour}",
            f"out of {_side(ratio.denominator)}" if len(ratio.denominator) == 1 else "out of all",
            unit,
        ),
    )
    panel = tile(ratio.title, lines, about_ratio(ratio), unit="ratio", steps=steps, decimals=1, orientation="vertical")
    for ref in ("B", "C"):
        panel.overrides.append(query_override(ref, ("color", {"mode": "fixed", "fixedColor": "text"})))
    return panel


def over_time(
    title: str,
    lines: Sequence[Line],
    about: str,
    *,
    unit: str,
    stacked: bool = False,
    highest: float | None = None,
    lowest: float | None = 0,
    legend: str = "list",
    overrides: Iterable[Mapping[str, Any]] = (),
    calcs: Sequence[str] = (),
) -> Visual:
    """Lines over time. A ratio's axis runs from 0 to 1, so that two panels can be compared at a glance."""
    custom: dict[str, Any] = {
        "drawStyle": "line",
        "lineInterpolation": "linear",
        "lineWidth": 1 if stacked else 2,
        "fillOpacity": 40 if stacked else 0,
        "showPoints": "never",
        "spanNulls": False,
        "axisPlacement": "auto",
        "stacking": {"mode": "normal" if stacked else "none", "group": "A"},
    }
    defaults: dict[str, Any] = {
        "unit": UNITS[unit],
        "noValue": NO_TRAFFIC,
        "color": {"mode": "palette-classic"},
        "custom": custom,
    }
    if lowest is not None:
        defaults["min"] = lowest
    if highest is not None or unit == "ratio":
        defaults["max"] = 1 if highest is None else highest
    options = {
        "legend": {"displayMode": legend, "placement": "bottom", "showLegend": True, "calcs": list(calcs)},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    settings = [*_units(lines, unit), *map(dict, overrides)]
    return _visual("timeseries", title, _targets(lines), about, options=options, defaults=defaults, overrides=settings)


def bars(title: str, lines: Sequence[Line], about: str, *, unit: str, highest: float | None = None) -> Visual:
    """Bars of now, one per series."""
    options = {
        "displayMode": "basic",
        "orientation": "horizontal",
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "showUnfilled": True,
        "valueMode": "color",
        "namePlacement": "auto",
        "sizing": "auto",
        "minVizWidth": 8,
        "minVizHeight": 16,
        "maxVizHeight": 40,
    }
    defaults: dict[str, Any] = {
        "unit": UNITS[unit],
        "noValue": NO_TRAFFIC,
        "min": 0,
        "color": {"mode": "fixed", "fixedColor": PLAIN},
        "thresholds": thresholds(((None, PLAIN),)),
    }
    if highest is not None:
        defaults["max"] = highest
    return _visual("bargauge", title, _targets(lines, instant=True), about, options=options, defaults=defaults)


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table: a query's value, or a label.

    Attributes:
        title: its heading.
        expr: PromQL of an instant vector; None for a label.
        label: the label, where it is one.
        unit: key of `UNITS`.
        steps: thresholds that colour the cell.
        width: in pixels; None shares what is left.
        mappings: value mappings.
    """

    title: str
    expr: str | None = None
    label: str | None = None
    unit: str = "count"
    steps: tuple[tuple[float | None, str], ...] = ()
    width: int | None = None
    mappings: tuple[Mapping[str, Any], ...] = ()


def table(title: str, columns: Sequence[Column], about: str, *, sort: str | None = None) -> Visual:
    """A table of now: rows are the label sets that its queries share."""
    values = [column for column in columns if column.expr is not None]
    targets = [
        Query(expr=column.expr, refId=_ref(place), instant=True, format="table", legendFormat="__auto")
        for place, column in enumerate(values)
    ]
    value_names = ["Value"] if len(values) == 1 else [f"Value #{_ref(place)}" for place in range(len(values))]
    names = dict(zip(value_names, (column.title for column in values), strict=True))
    labels = {column.label: column.title for column in columns if column.label}
    order = {
        column.label or next(k for k, v in names.items() if v == column.title): at for at, column in enumerate(columns)
    }
    shown = list(order)
    transformations: list[dict[str, Any]] = [{"id": "merge", "options": {}}] if len(values) > 1 else []
    transformations += [
        {"id": "filterFieldsByName", "options": {"include": {"names": shown}}},
        {
            "id": "organize",
            "options": {"excludeByName": {}, "indexByName": order, "renameByName": {**labels, **names}},
        },
    ]
    options: dict[str, Any] = {"cellHeight": "sm", "showHeader": True}
    if sort:
        options["sortBy"] = [{"displayName": sort, "desc": True}]
    defaults = {"noValue": "", "custom": {"align": "auto", "cellOptions": {"type": "auto"}, "inspect": False}}
    overrides = [_cell(column) for column in columns]
    panel = _visual("table", title, targets, about, options=options, defaults=defaults, overrides=overrides)
    panel.transformations = transformations
    return panel


def heatmap(title: str, expr: str, about: str, *, unit: str) -> Visual:
    """How a histogram's observations spread over its buckets, over time."""
    options = {
        "calculate": False,
        "cellGap": 1,
        "color": {
            "mode": "scheme",
            "scheme": "Blues",
            "steps": 64,
            "exponent": 0.5,
            "reverse": False,
            "fill": "dark-blue",
        },
        "filterValues": {"le": 1e-9},
        "legend": {"show": True},
        "rowsFrame": {"layout": "auto"},
        "tooltip": {"mode": "single", "yHistogram": False, "showColorScale": False},
        "yAxis": {"axisPlacement": "left", "unit": UNITS[unit]},
        "exemplars": {"color": "rgba(255,0,255,0.7)"},
        "showValue": "never",
    }
    target = Query(expr=expr, refId="A", format="heatmap", legendFormat="{{le}}")
    defaults = {"noValue": NO_TRAFFIC, "unit": "short"}
    return _visual("heatmap", title, [target], about, options=options, defaults=defaults)


def words(title: str, content: str) -> Visual:
    """A few sentences."""
    return Visual(kind="text", title=title, description=content, options={"mode": "markdown", "content": content})


def about_ratio(ratio: Ratio) -> str:
    """What a ratio divides: in the denominator, and not in it."""
    top, bottom = (_side(side) for side in (ratio.numerator, ratio.denominator))
    return (
        f"{top} divided by {bottom}. In the denominator: {ratio.counted}. Not in it: {ratio.left_out}. "
        "Summed over pods first, divided last."
    )


def sides_unit(ratio: Ratio) -> str:
    """The unit of a ratio's two sides, as rates."""
    plane = measures.ENGINE if ratio.plane == "engine" else measures.USAGE
    return {"tokens": "tokens/s", "requests": "requests/s", "currency": "currency/h"}[plane[ratio.denominator[0]].unit]


def thresholds(steps: Sequence[tuple[float | None, str]]) -> dict[str, Any]:
    """Absolute thresholds; the first has no lower end."""
    return {"mode": "absolute", "steps": [{"color": color, "value": value} for value, color in steps]}


def value_map(texts: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    """Shows a value as words: value to text and colour."""
    options = {
        value: {"text": text, "color": color, "index": place}
        for place, (value, (text, color)) in enumerate(texts.items())
    }
    return {"type": "value", "options": options}


def reads(expressions: Iterable[str]) -> list[str]:
    """Names of series that some PromQL reads, each once, in order."""
    return list(dict.fromkeys(name for expr in expressions for name in _NAME.findall(expr)))


def _visual(kind: str, title: str, targets: Sequence[Query], about: str, **more: Any) -> Visual:
    names = reads(target.expr for target in targets)
    description = f"{about}\n\nReads {', '.join(f'`{name}`' for name in names)}"
    return Visual(kind=kind, title=title, targets=list(targets), description=description, **more)


def _targets(lines: Sequence[Line], *, instant: bool = False) -> list[Query]:
    return [
        Query(expr=line.expr, refId=_ref(place), legendFormat=line.legend, instant=instant)
        for place, line in enumerate(lines)
    ]


def _units(lines: Sequence[Line], unit: str) -> list[dict[str, Any]]:
    return [
        query_override(_ref(place), ("unit", UNITS[line.unit]))
        for place, line in enumerate(lines)
        if line.unit not in {None, unit}
    ]


def _cell(column: Column) -> dict[str, Any]:
    properties: list[tuple[str, Any]] = []
    if column.expr is not None:
        properties.append(("unit", UNITS[column.unit]))
    if column.steps:
        properties += [
            ("thresholds", thresholds(column.steps)),
            ("custom.cellOptions", {"type": "color-text"}),
            ("color", {"mode": "thresholds"}),
        ]
    if column.width:
        properties.append(("custom.width", column.width))
    if column.mappings:
        properties.append(("mappings", list(column.mappings)))
        properties.append(("custom.cellOptions", {"type": "color-text"}))
    return value_override(column.title, *properties)


def _side(ids: Sequence[str]) -> str:
    return " + ".join(id_.replace("_", " ") for id_ in ids)


def _ref(place: int) -> str:
    return chr(ord("A") + place)
