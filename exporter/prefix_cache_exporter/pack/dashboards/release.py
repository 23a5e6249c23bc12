"""Release: what did this release do? Old and new revision side by side on an axis of time since release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prefix_cache_exporter.measures import EXPORTER, USAGE
from prefix_cache_exporter.pack import queries
from prefix_cache_exporter.pack.alerts import dashboards as uids
from prefix_cache_exporter.pack.names import families
from prefix_cache_exporter.pack.records import fingerprints, releases

from . import panels
from .board import Question, board
from .layout import Cell, Section
from .panels import NO_TRAFFIC, UNITS, Column, Line
from .reading import Reader, ratio_of
from .shapes import Query, Visual, query_override, value_override
from .variables import by_label, datasource, from_result

if TYPE_CHECKING:
    from grafanalib.core import Template

    from prefix_cache_exporter.pack.names import Names

QUESTION = Question(uids.RELEASE, "Release", "What did this release do?", hours=12)
_NARROW = 'source=~"$source",model=~"$model",template="$template"'
OLD, NEW = 'template_revision="$old_revision"', 'template_revision="$new_revision"'
# A raw string: what the format escapes is meant for the pattern, not for a string around it.
_BOTH = "template_revision=~`${old_revision:regex}|${new_revision:regex}`"
_PINNED = {
    "source": "Source",
    "model": "Model",
    "template": "Template",
    "template_revision": "Revision",
    "tokenizer_revision": "Tokenizer",
    "model_revision": "Model revision",
    "release_fingerprint": "Fingerprint",
    "leading_fingerprint": "Leading",
    "predecessor_revision": "Predecessor",
}
_OLD, _NEW = "orange", "blue"
_HOUR = 3600
_AGE = (("unit", UNITS["hours"]), ("decimals", 1), ("min", 0), ("custom.axisLabel", "since first traffic"))
_WHOLE = (("min", 0), ("max", 1))
_TTFT = USAGE["time_to_first_token_seconds"]
_PLANES = (("engine", "engine_population_hit"), ("usage", "usage_population_hit"))


def make(names: Names) -> str:
    """The dashboard."""
    reader = Reader(names)
    sections = (
        Section("Old and new by time since their first traffic", tuple(_aligned(names, *plane) for plane in _PLANES)),
        Section("The cold window", tuple(_cold_tiles(names, *plane) for plane in _PLANES)),
        Section("Around the release", (*(_around(names, *plane) for plane in _PLANES), _prefixes(names))),
        Section("Latency of like with like: time to first token by prompt length", _latency(names)),
        Section("What is pinned", (Cell(_pins(reader), 24, 7),)),
    )
    return board(names, QUESTION, variables(names), sections, marks=_NARROW)


def variables(names: Names) -> list[Template]:
    """Source, model and template, then two revisions: the newest, and the newest of the others."""
    family = EXPORTER["release_first_traffic_timestamp_seconds"]
    found = [datasource(), by_label(names, "source", family, ()), by_label(names, "model", family, ("source",))]
    age, regex = releases.age(names), '/template_revision="([^"]+)"/'
    # One template, that of the latest release: the revisions of two have nothing to do with each other.
    latest = f'sort(min by (template) ({age}{{source=~"$source",model=~"$model",template_revision!~"mixed|other|"}}))'
    found.append(from_result("template", "Template", latest, '/template="([^"]*)"/'))
    single = f'{_NARROW},template_revision!~"mixed|other|"'
    newest = f"sort(min by (template_revision) ({age}{{{single}}}))"
    other = f'sort(min by (template_revision) ({age}{{{single},template_revision!="$new_revision"}}))'
    return [
        *found,
        from_result("new_revision", "New revision", newest, regex),
        from_result("old_revision", "Old revision", other, regex),
    ]


def _sides(names: Names, plane: str, id_: str, revision: str) -> tuple[str, str, str]:
    """A recorded ratio of one revision over the reader's selection, with both sides."""
    ratio = ratio_of(id_)
    sides = []
    for side in (ratio.numerator, ratio.denominator):
        (measure,) = side
        series = names.rate(families(plane)[measure], names.settings.windows.short)
        sides.append(f"sum({series}{{{_NARROW},{revision}}})")
    return queries.ratio(*sides), sides[0], sides[1]


def _aligned(names: Names, plane: str, id_: str) -> Cell:
    ratio, age = ratio_of(id_), releases.age(names)
    targets = []
    for place, (title, revision) in enumerate((("old", OLD), ("new", NEW))):
        when = f"max({age}{{{_NARROW},{revision}}}) / {_HOUR}"
        targets.append(Query(expr=when, refId=f"X{place}", legendFormat=f"age of {title}"))
        targets.append(
            Query(expr=_sides(names, plane, id_, revision)[0], refId=f"Y{place}", legendFormat=f"{title} revision")
        )
    about = (
        f"{panels.about_ratio(ratio)} Both revisions begin at the left edge: the axis is time since the first "
        "traffic of each."
    )
    description = f"{about}\n\nReads {', '.join(f'`{name}`' for name in panels.reads(t.expr for t in targets))}"
    series = [_curve(title) for title in ("old", "new")]
    panel = Visual(
        kind="xychart",
        title=f"{ratio.title} since first traffic",
        description=description,
        targets=targets,
        transformations=[{"id": "joinByField", "options": {"byField": "Time", "mode": "outer"}}],
        options={
            "mapping": "manual",
            "series": series,
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
            "tooltip": {"mode": "single", "sort": "none"},
        },
        defaults={
            "noValue": NO_TRAFFIC,
            "unit": UNITS["ratio"],
            "custom": {"show": "lines", "lineWidth": 2, "fillOpacity": 0, "axisPlacement": "auto"},
            "color": {"mode": "palette-classic"},
        },
        overrides=[
            *(value_override(f"age of {title}", *_AGE) for title in ("old", "new")),
            value_override("old revision", ("color", _fixed(_OLD)), *_WHOLE),
            value_override("new revision", ("color", _fixed(_NEW)), *_WHOLE),
        ],
    )
    return Cell(panel, 12, 9)


def _curve(title: str) -> dict[str, Any]:
    return {
        "name": {"fixed": f"{title} revision"},
        "frame": {"matcher": {"id": "byIndex", "options": 0}},
        "x": {"matcher": {"id": "byName", "options": f"age of {title}"}},
        "y": {"matcher": {"id": "byName", "options": f"{title} revision"}},
    }


def _cold_tiles(names: Names, plane: str, id_: str) -> Cell:
    memory, interval = names.settings.release.memory, names.settings.interval
    quotient = _sides(names, plane, id_, NEW)[0]
    expected = f"max({names.of_ratio(ratio_of(id_), 'ratio_expected')}{{{_NARROW},{NEW}}})"
    warm = queries.number(names.settings.thresholds.warm)
    cold = f"({quotient}) < ({expected}) * {warm}"
    measured = f"count_over_time(({cold})[{memory}:{interval}]) * {queries.number(interval.seconds)}"
    lines = (
        Line(quotient, "ratio now", "ratio"),
        Line(expected, "expected", "ratio"),
        Line(f"max({releases.cold_window(names)}{{{_NARROW},{NEW}}})", "cold predicted"),
        # A revision that was never cold was cold for 0 seconds; one without traffic was not seen at all.
        Line(f"{measured} or ({quotient}) * 0", "cold measured"),
    )
    about = (
        f"{panels.about_ratio(ratio_of(id_))} Of the new revision. Predicted: the cold window that its release says, "
        "else the pack file's default. Measured: for how long it has been below "
        f"{float(warm):.0%} of what is expected of it, as far as {memory} back."
    )
    panel = panels.tile(f"Warming up, {plane} plane", lines, about, unit="seconds", decimals=1)
    return Cell(panel, 12, 4)


def _around(names: Names, plane: str, id_: str) -> Cell:
    both = (("old", OLD), ("new", NEW))
    lines = [Line(_sides(names, plane, id_, revision)[0], f"{title}: ratio") for title, revision in both]
    lines += [Line(_sides(names, plane, id_, revision)[2], f"{title}: prompt", "tokens/s") for title, revision in both]
    ratio = ratio_of(id_)
    about = (
        f"{panels.about_ratio(ratio)} The denominators are drawn too (dotted, right axis): traffic moving from one "
        "revision to the other."
    )
    coloured = zip("ABCD", (_OLD, _NEW) * 2, strict=True)
    overrides = [query_override(ref, ("color", _fixed(color))) for ref, color in coloured]
    overrides += [query_override(ref, *_WHOLE) for ref in "AB"] + [_right(ref) for ref in "CD"]
    panel = panels.over_time(f"{ratio.title} and traffic", lines, about, unit="ratio", part=False, overrides=overrides)
    return Cell(panel, 8, 9)


def _prefixes(names: Names) -> Cell:
    selected = f"{{{_NARROW},{_BOTH}}}"
    distinct, requests = fingerprints.distinct(names), fingerprints.requests(names)
    by = ("template", "template_revision")
    lines = (
        Line(queries.total(by, f"{distinct}{selected}"), "{{template_revision}}: distinct beginnings"),
        Line(queries.total(by, f"{requests}{selected}"), "{{template_revision}}: requests"),
    )
    about = (
        "Distinct beginnings of prompts in the sliding window, beside the requests of the same window. Where the first "
        "grows with the second, something near the front of the prompt changes with every request."
    )
    return Cell(panels.over_time("Leading fingerprints", lines, about, unit="count"), 8, 9)


def _latency(names: Names) -> tuple[Cell, ...]:
    by, selected = ("prompt_band", "template_revision"), f"{_NARROW},{_BOTH}"
    selector = ",".join(filter(None, (names.settings.selector, selected)))

    def seen(part: str, keep: tuple[str, ...] = by) -> str:
        return queries.total(keep, f"increase({_TTFT.name}{part}{{{selector}}}[$__range])")

    def quantile(share: float) -> str:
        return f"histogram_quantile({share}, {seen('_bucket', ('le', *by))}) and ({seen('_count')} > 0)"

    columns = (
        Column("Tokens", label="prompt_band"),
        Column("Revision", label="template_revision"),
        Column("Mean", queries.ratio(seen("_sum"), seen("_count")), unit="seconds"),
        Column("P50", quantile(0.5), unit="seconds"),
        Column("P95", quantile(0.95), unit="seconds"),
        Column("Requests", f"{seen('_count')} > 0", unit="whole"),
    )
    about = (
        "Time to the first content fragment over the time range shown, by prompt-length band, so that a change of the "
        "mix of prompts is not taken for a change of latency. The mean divides seconds by requests that had a time to "
        "first token (in the denominator; not in it: requests without one). Few requests make a quantile worth little."
    )
    kept = ("prompt_band", "cache_state")
    recorded = [names.rate(_TTFT, names.settings.windows.short, part=part, kept=kept) for part in ("_sum", "_count")]
    mean = queries.ratio(*(queries.total(by, f"{series}{{{selected}}}") for series in recorded))
    about_mean = (
        "Seconds to the first token divided by requests, band by band (in the denominator: requests that had a time to "
        "first token; not in it: requests without one)."
    )
    lines = (Line(mean, "{{prompt_band}} tokens, {{template_revision}}"),)
    return (
        Cell(panels.table("Time to first token, before and after", columns, about, sort=("Tokens", "Revision")), 12, 8),
        Cell(panels.over_time("Mean time to first token by band", lines, about_mean, unit="seconds"), 12, 8),
    )


def _pins(reader: Reader) -> Visual:
    info = EXPORTER["release_info"]
    selector = ",".join(filter(None, (reader.names.settings.selector, _NARROW, _BOTH)))
    columns = (
        *(Column(title, label=label) for label, title in _PINNED.items()),
        Column("Pods", f"count by ({', '.join(_PINNED)}) ({info.name}{{{selector}}})", width=70),
    )
    about = "What the pods say is pinned together. One revision in two rows is drift: the same name, two contents."
    return panels.table("Pins", columns, about)


def _fixed(color: str) -> dict[str, str]:
    return {"mode": "fixed", "fixedColor": color}


def _right(ref: str) -> dict[str, Any]:
    return query_override(
        ref,
        ("custom.axisPlacement", "right"),
        ("custom.lineStyle", {"fill": "dot", "dash": [2, 4]}),
        ("custom.lineWidth", 1),
    )
