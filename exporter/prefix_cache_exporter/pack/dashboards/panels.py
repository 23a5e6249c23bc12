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

    from .reading import Sides

NO_TRAFFIC = "No traffic"
NOTHING = "Nothing. Empty is good."
UNITS = {
    "ratio": "percentunit",
    "tokens": "short",
    "tokens/s": "si:tok/s",
    "requests/s": "reqps",
    "seconds": "s",
    "bytes": "decbytes",
    "count": "short",
    "whole": "locale",
    "timestamp": "dateTimeFromNow",
    "currency/h": "suffix:/h",
    "currency": "short",
    "per second": "suffix:/s",
    "per hour": "suffix:/h",
    "hours": "h",
}
"""What a number is, as Grafana's unit ids. Every panel has one."""
_COUNTED = frozenset({"count", "whole", "per second", "per hour", "requests/s"})
_NAME = re.compile(r"\b(?:[a-z_]+:)?prefix_cache_[a-z0-9_]+(?::[a-z0-9_]+)?|\bALERTS\b")
PLAIN_TEXT = ("color", {"mode": "fixed", "fixedColor": "text"})
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
    orientation: str = "vertical",
) -> Visual:
    """Numbers of now, side by side and of one size."""
    options = {
        "colorMode": "value",
        "graphMode": "none",
        "justifyMode": "auto",
        "orientation": orientation,
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "text": {"titleSize": 13, "valueSize": 22},
        "textMode": "value_and_name" if len(lines) > 1 else "auto",
        "wideLayout": False,
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


def part_tile(
    title: str,
    part: tuple[str, str],
    whole: tuple[str, str],
    about: str,
    *,
    unit: str,
    steps: Sequence[tuple[float | None, str]],
) -> Visual:
    """How much of something there is now: the share, in colour, beside the part and the whole.

    Args:
        title: of the panel.
        part: its query and its legend.
        whole: its query and its legend.
        about: what the panel shows, and what is in the denominator.
        unit: of both, key of `UNITS`.
        steps: thresholds of the share.
    """
    lines = (Line(queries.ratio(part[0], whole[0]), "share", "ratio"), Line(*part), Line(*whole))
    return judged(tile(title, lines, about, unit=unit, steps=((None, "text"),)), "A", steps)


def ratio_tile(ratio: Ratio, sides: Sides, steps: Sequence[tuple[float | None, str]]) -> Visual:
    """A ratio of now with its numerator and denominator beside it, the ratio in colour."""
    unit = sides_unit(ratio)
    scale = " * 3600" if unit == "currency/h" else ""
    suffix = " ({{currency}})" if unit == "currency/h" else ""
    lines = (
        Line(sides.quotient, f"ratio{suffix}"),
        Line(f"{queries.grouped(sides.numerator)}{scale}", f"{short(ratio.numerator)}{suffix}", unit),
        Line(f"{queries.grouped(sides.denominator)}{scale}", f"of {_whole(ratio)}{suffix}", unit),
    )
    panel = tile(ratio.title, lines, about_ratio(ratio), unit="ratio", steps=steps, decimals=1)
    panel.overrides += [query_override(ref, PLAIN_TEXT) for ref in ("B", "C")]
    return panel


def over_time(
    title: str,
    lines: Sequence[Line],
    about: str,
    *,
    unit: str,
    stacked: bool = False,
    part: bool | None = None,
    overrides: Iterable[Mapping[str, Any]] = (),
) -> Visual:
    """Lines over time, from 0.

    The axis of a `part` of a whole, which a ratio is unless said otherwise, ends at 1, so that two panels can be
    compared at a glance.
    """
    custom: dict[str, Any] = {
        "drawStyle": "line",
        "lineInterpolation": "linear",
        "lineWidth": 1 if stacked else 2,
        "fillOpacity": 40 if stacked else 0,
        "showPoints": "never",
        "spanNulls": False,
        "axisPlacement": "auto",
        # A count that never moved lies on the ground, not under an axis up to 100.
        "axisSoftMax": 1,
        "stacking": {"mode": "normal" if stacked else "none", "group": "A"},
    }
    if unit not in _COUNTED:
        del custom["axisSoftMax"]
    defaults: dict[str, Any] = {
        "unit": UNITS[unit],
        "noValue": NO_TRAFFIC,
        "color": {"mode": "palette-classic"},
        "custom": custom,
        "min": 0,
    }
    if part if part is not None else unit == "ratio":
        defaults["max"] = 1
    if unit == "whole":
        defaults["decimals"] = 0
    options = {
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    settings = [*_units(lines, unit), *map(dict, overrides)]
    return _visual("timeseries", title, _targets(lines), about, options=options, defaults=defaults, overrides=settings)


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
        wrapped: whether a long text goes on in a next line.
    """

    title: str
    expr: str | None = None
    label: str | None = None
    unit: str = "count"
    steps: tuple[tuple[float | None, str], ...] = ()
    width: int | None = None
    mappings: tuple[Mapping[str, Any], ...] = ()
    wrapped: bool = False


def table(
    title: str, columns: Sequence[Column], about: str, *, sort: Sequence[str] = (), empty: str = NO_TRAFFIC
) -> Visual:
    """A table of now: rows are the label sets that its queries share; `empty` stands where there is none.

    Rows are sorted by the columns in `sort`: numbers from the largest down, labels from A to Z.
    """
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
        numbers = {column.title for column in values}
        options["sortBy"] = [{"displayName": name, "desc": name in numbers} for name in sort]
    custom = {"align": "auto", "cellOptions": {"type": "auto"}, "inspect": False, "minWidth": 60}
    defaults = {"unit": UNITS["count"], "noValue": empty, "custom": custom}
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


def judged(panel: Visual, ref: str, steps: Sequence[tuple[float | None, str]]) -> Visual:
    """The same panel with thresholds of its own for one query's number."""
    panel.overrides.append(query_override(ref, ("thresholds", thresholds(steps))))
    return panel


def value_map(texts: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    """Shows a value as words: value to text and colour."""
    options = {
        value: {"text": text, "color": color, "index": place}
        for place, (value, (text, color)) in enumerate(texts.items())
    }
    return {"type": "value", "options": options}


UNNAMED = {"type": "special", "options": {"match": "empty", "result": {"text": "(none)", "color": "text", "index": 99}}}
"""Shows an empty label as a word."""
_SHORT = {
    "cached_prompt_tokens": "cached",
    "prompt_tokens": "prompt",
    "excluded_prompt_tokens": "excluded",
    "unreported_prompt_tokens": "unreported",
    "eligible_cached_tokens": "cached",
    "eligible_tokens": "eligible",
    "hit_requests": "with a hit",
    "reported_requests": "reported",
    "unreported_requests": "unreported",
    "eligible_requests": "eligible",
    "input_cost": "paid",
    "counterfactual_input_cost": "uncached",
}


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
        if column.unit == "whole":
            properties.append(("decimals", 0))
    else:
        # Traffic that nobody named a release or a namespace for.
        properties.append(("mappings", [*column.mappings, UNNAMED]))
    if column.steps:
        properties += [("thresholds", thresholds(column.steps)), ("color", {"mode": "thresholds"})]
    if column.steps or column.mappings:
        properties.append(("custom.cellOptions", {"type": "color-text", "wrapText": column.wrapped}))
    if column.width:
        properties.append(("custom.width", column.width))
    return value_override(column.title, *properties)


def _whole(ratio: Ratio) -> str:
    return short(ratio.denominator) if len(ratio.denominator) == 1 else "all"


def short(ids: Sequence[str]) -> str:
    """A side of a ratio in a word or two, for legends; descriptions have the whole."""
    return " + ".join(_SHORT.get(id_, id_.replace("_", " ")) for id_ in ids)


def _side(ids: Sequence[str]) -> str:
    return " + ".join(id_.replace("_", " ") for id_ in ids)


def _ref(place: int) -> str:
    return chr(ord("A") + place)
