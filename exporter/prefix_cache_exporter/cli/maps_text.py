"""What `maps` prints for people; `--json` prints the same as data."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from prefix_cache_exporter.engine.apply import Application
    from prefix_cache_exporter.engine.maps import MapSet
    from prefix_cache_exporter.engine.records import DialectMap, Entry, VersionMap

_INDENT = "  "
_NAME = 32
"""Columns of a measure's name."""
_UNITLESS = {"1", "ratio", "name"}


def listed(maps: MapSet) -> Iterator[str]:
    """Every map, the releases that were read and agree with it, and its dialects."""
    for file in maps.files:
        releases = [release for release, home in maps.releases.items() if home == file]
        version = maps.resolve(file)
        dialects = [
            dialect.name + ("" if dialect.verified else " unverified")
            for dialect in (version.dialects if version else ())
        ]
        yield f"vllm/{file}: {' '.join(releases) or 'nothing'} verified ({', '.join(dialects)})"


def flat(version: VersionMap, dialects: Iterable[DialectMap], measures: Iterable[str]) -> Iterator[str]:
    """The flat map of a version: a line for each measure and caveat of each dialect."""
    yield f"vllm {version.version}: {version.name}, {'verified' if version.verified else 'unverified'}"
    names = tuple(measures)
    for dialect in dialects:
        yield ""
        yield f"{dialect.name}: {dialect.title}{'' if dialect.verified else ' (facts not read from a release)'}"
        for name in names:
            entry = dialect.entries.get(name)
            yield f"{_INDENT}{name:<{_NAME}}{'withheld: not_exposed' if entry is None else _source(entry)}"
        for name, entry in dialect.evidence.items():
            yield f"{_INDENT}{name:<{_NAME}}{_source(entry)} (only for caveats)"
        for caveat in dialect.caveats.values():
            invalid = f"; invalidates {', '.join(caveat.invalidates)}" if caveat.invalidates else ""
            yield f"{_INDENT}caveat {caveat.id}: {caveat.counts} ({caveat.errs}{invalid})"
            for link in caveat.source:
                yield f"{_INDENT * 2}{link}"


def _source(entry: Entry) -> str:
    if entry.withheld:
        return f"withheld: {entry.withheld}"
    family = " + ".join(entry.families) + (f"_{entry.part}" if entry.part else "")
    where = "".join(f" {label}={value}" for label, value in entry.where.items())
    label = f" label {entry.label}" if entry.label else ""
    by = f" by {entry.by}" if entry.by else ""
    times = "".join(f" x {factor}" for factor in entry.times)
    gate = f" (only with {entry.gate})" if entry.gate else ""
    return f"{family}{where}{label}{by}, {entry.unit}{times}{gate}"


def applied(application: Application, since: str) -> Iterator[str]:
    """What a page says.

    Args:
        application: the page through its map.
        since: from where its counters count.
    """
    plan = application.reading.plan
    meanings = {} if plan is None else plan.dialect.caveats
    answer = application.as_json()
    chosen = [answer[key] for key in ("metric_map", "dialect", "name_style") if answer[key]]
    yield f"vllm {answer['engine_version'] or 'unknown'}: {', '.join([*chosen, answer['state']])}"
    yield from (f"{_INDENT}{reason}" for reason in answer["reasons"])
    engines = answer["engines"]
    if engines:
        yield f"counters count since {since}"
    for name, engine in engines.items():
        yield f"engine {name}, model {engine['model'] or 'unnamed'}"
        for measure, found in engine["measures"].items():
            yield _measured(measure, found["value"], found["unit"], found["family"], found.get("by"))
        yield from (
            f"{_INDENT}{reason}: {tokens:,} prompt tokens excluded" for reason, tokens in engine["excluded"].items()
        )
        own = {measure: why for measure, why in engine["withheld"].items() if not _everywhere(engines, measure, why)}
        yield from (f"{_INDENT}{line}" for line in _withheld(own))
    if len(engines) > 1:
        units = {measure: found["unit"] for engine in engines.values() for measure, found in engine["measures"].items()}
        yield "all engines"
        for measure, value in answer["totals"].items():
            yield _measured(measure, value, units.get(measure, "tokens"))
    yield from _withheld(
        {measure: why for measure, why in answer["withheld"].items() if _everywhere(engines, measure, why)}
    )
    yield from (f"caveat {id_}: {meanings[id_].counts}" for id_ in answer["caveats"])
    yield from (f"anomaly {reason}: {count}" for reason, count in answer["anomalies"].items())
    if answer["restarts"]:
        yield f"restarts: {answer['restarts']}"


def _everywhere(engines: Mapping[str, Any], measure: str, why: str) -> bool:
    return all(engine["withheld"].get(measure) == why for engine in engines.values())


def _withheld(reasons: Mapping[str, str]) -> Iterator[str]:
    """One line for each reason."""
    for why, measures in groupby(sorted(reasons, key=lambda measure: reasons[measure]), key=lambda name: reasons[name]):
        yield f"withheld, {why}: {', '.join(measures)}"


def _measured(measure: str, value: Any, unit: str, family: str = "", by: Mapping[str, float] | None = None) -> str:
    unit = "" if unit in _UNITLESS else unit
    line = f"{_INDENT}{measure:<{_NAME}}{_value(value, unit):>16} {'' if isinstance(value, dict) else unit:<9}{family}"
    split = f"{'' if family else ' '} ({_named(by)})" if by else ""
    return (line + split).rstrip()


def _value(value: float | str | Mapping[str, Any], unit: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:,.10g}"
    if "buckets" in value:
        return f"{value['count']:,} in {value['sum']:,.6g} {unit}"
    return _named(value)


def _named(values: Mapping[str, float]) -> str:
    return " ".join(f"{name}={number:g}" for name, number in values.items())
