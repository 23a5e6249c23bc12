"""What the status page says, before it is markup: plain data made from one snapshot. Nothing here reads a clock."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prefix_cache_exporter import measures

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from prefix_cache_exporter.measures import Family, Ratio
    from prefix_cache_exporter.recorder import Exposed

    from .history import Totals

    _Gauges = Mapping[str, Sequence[tuple[Mapping[str, str], float]]]

RECENT_SECONDS = 300
"""What "the last 5 minutes" is."""
SPARK_STEPS, SPARK_SECONDS = 30, 1800
"""A sparkline: one point a minute over half an hour."""


@dataclass(frozen=True, slots=True)
class Quotient:
    """Both sides of a ratio, in units, and what grew instead where it cannot be known.

    `value` is None where the denominator is 0: that is not 0 %.
    """

    numerator: float
    denominator: float
    unknown: float = 0

    @property
    def value(self) -> float | None:
        """The ratio, or None."""
        return self.numerator / self.denominator if self.denominator else None


@dataclass(frozen=True, slots=True)
class RatioView:
    """One ratio of one source."""

    ratio: Ratio
    unit: str
    recent: Quotient
    total: Quotient
    spark: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Note:
    """A short sentence with how bad it is: `good`, `bad` or `plain`."""

    text: str
    tone: str = "plain"


@dataclass(slots=True)
class SourceView:
    """One configured source: its state in words, and its ratios."""

    name: str
    planes: list[str] = field(default_factory=list)
    state: list[Note] = field(default_factory=list)
    facts: list[tuple[str, str]] = field(default_factory=list)
    caveats: list[tuple[str, str]] = field(default_factory=list)
    withheld: list[tuple[str, str]] = field(default_factory=list)
    releases: list[str] = field(default_factory=list)
    ratios: list[RatioView] = field(default_factory=list)

    @property
    def tone(self) -> str:
        """The worst tone among its notes."""
        tones = {note.tone for note in self.state}
        return "bad" if "bad" in tones else "good" if "good" in tones else "plain"


def build(
    rows: Iterable[Exposed],
    *,
    total: Totals,
    recent: Totals,
    steps: Sequence[Totals],
    now: float,
    describe_caveat: Callable[[str], str],
) -> list[SourceView]:
    """One view per source that the page knows, sorted by name."""
    gauges: dict[str, dict[str, list[tuple[dict[str, str], float]]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        labels = dict(zip(row.family.labels, row.values, strict=True))
        if row.family.kind in {"gauge", "info"} and labels.get("source"):
            gauges[labels["source"]][row.family.name].append((labels, row.parts[""]))
    names = sorted({*gauges, *(name[1] for name in total if len(name) == _BY_SOURCE)})
    views = []
    for name in names:
        view = SourceView(name)
        found = gauges[name]
        _engine(view, found, recent, now, describe_caveat)
        _usage(view, found, total, now)
        _release(view, found)
        for ratio in measures.RATIOS:
            one = _ratio(ratio, name, total, recent, steps)
            if one is not None:
                view.ratios.append(one)
        if view.planes or view.ratios:
            views.append(view)
    return views


_BY_SOURCE = 2


def _engine(
    view: SourceView, gauges: _Gauges, recent: Totals, now: float, describe_caveat: Callable[[str], str]
) -> None:
    ups = gauges.get(_name("up"), ())
    if not ups:
        return
    view.planes.append("engine")
    success = _first(gauges, "last_success_timestamp_seconds")
    if ups[0][1]:
        view.state.append(Note("engine up", "good"))
    else:
        errors = _name("poll_errors")
        reasons = [
            f"{key[2]} ({amount:g} time{'' if amount == 1 else 's'})"
            for key, amount in recent.items()
            if _is(key, errors, view.name) and amount
        ]
        why = f": {', '.join(sorted(reasons))} in the last 5 minutes" if reasons else ""
        last = f"; last page {ago(now - success)} ago" if success else "; no page yet"
        view.state.append(Note(f"engine down{why}{last}", "bad"))
    view.withheld = sorted((labels["measure"], labels["reason"]) for labels, _ in gauges.get(_name("withheld"), ()))
    for labels, value in gauges.get(_name("map_state"), ()):
        if value:
            view.state.append(_map_note(labels["state"], {reason for _, reason in view.withheld}))
    _engine_facts(view, gauges)
    ids = sorted(labels["caveat"] for labels, value in gauges.get(_name("caveat"), ()) if value)
    view.caveats = [(id_, describe_caveat(id_)) for id_ in ids]


def _engine_facts(view: SourceView, gauges: _Gauges) -> None:
    infos = [labels for labels, _ in gauges.get(_name("info"), ())]
    for key, title in _INFO.items():
        values = sorted({labels[key] for labels in infos if labels.get(key)})
        if values:
            view.facts.append((title, ", ".join(values)))
    sizes = sorted({value for _, value in gauges.get(_name("block_size_tokens"), ())})
    if sizes:
        view.facts.append(("Block size", ", ".join(f"{size:g} tokens" for size in sizes)))


def _usage(view: SourceView, gauges: _Gauges, total: Totals, now: float) -> None:
    readable = gauges.get(_name("log_readable", "usage"), ())
    if not readable:
        return
    view.planes.append("usage")
    view.state.append(
        Note("log readable", "good") if readable[0][1] else Note("log not readable, or no file there", "bad")
    )
    last, unread = (
        _first(gauges, "log_last_record_timestamp_seconds", "usage"),
        _first(gauges, "log_unread_bytes", "usage"),
    )
    view.facts.append(("Last record", f"{ago(now - last)} ago" if last else "none yet"))
    if unread is not None:
        view.facts.append(("Log lag", f"{unread:,.0f} bytes unread"))
    for id_, title in _BY_REASON.items():
        family = measures.USAGE[id_].name
        amounts = {key[2]: amount for key, amount in total.items() if _is(key, family, view.name) and amount}
        if amounts:
            parts = ", ".join(f"{amount:,.0f} {reason}" for reason, amount in sorted(amounts.items()))
            view.facts.append((title, parts))


def _release(view: SourceView, gauges: _Gauges) -> None:
    rows = gauges.get(measures.EXPORTER["release_in_force"].name, ())
    view.releases = sorted(f"{labels['template']} {labels['template_revision']}".strip() for labels, _ in rows)
    valid = gauges.get(measures.EXPORTER["release_file_valid"].name)
    if view.planes and valid and not valid[0][1]:
        view.state.append(Note("release file not taken", "bad"))


def _ratio(ratio: Ratio, source: str, total: Totals, recent: Totals, steps: Sequence[Totals]) -> RatioView | None:
    plane = measures.ENGINE if ratio.plane == "engine" else measures.USAGE
    sides = [[plane[id_] for id_ in side] for side in (ratio.numerator, ratio.denominator, ratio.unknown)]
    if not any((family.name, source) in total for family in (*sides[1], *sides[2])):
        return None
    quotients = [Quotient(*[_sum(side, source, found) for side in sides]) for found in (total, recent, *steps)]
    spark = tuple(one.value for one in quotients[2:])
    return RatioView(ratio, sides[1][0].unit, recent=quotients[1], total=quotients[0], spark=spark)


def _sum(families: Iterable[Family], source: str, totals: Totals) -> float:
    return sum(totals.get((family.name, source), 0) / family.scale for family in families)


def ago(seconds: float) -> str:
    """A duration in the one or two words that people use."""
    for size, word in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {word}"
    return f"{max(seconds, 0):.0f} s"


_WHY = {
    "unknown_version": "neither the server nor engine_version names a version that a map describes",
    "unknown_name_style": "the map of this version has no such name_style",
    "version_mismatch": "the server names another version than engine_version",
    "mismatch": "the page is not what its version writes",
    "missing": "the page lacks what its version writes",
}
"""Why a page is not believed, by the reason for which its measures are withheld."""


def _map_note(state: str, reasons: Collection[str]) -> Note:
    tone = {"verified": "good", "unverified": "plain"}.get(state, "bad")
    why = next((f": {words}" for reason, words in _WHY.items() if reason in reasons), "") if tone == "bad" else ""
    return Note(f"metric map {state}{why}", tone)


def _first(gauges: _Gauges, id_: str, plane: str = "engine") -> float | None:
    rows = gauges.get(_name(id_, plane), ())
    return rows[0][1] if rows else None


def _is(key: tuple[str, ...], family: str, source: str) -> bool:
    return len(key) > _BY_SOURCE and key[:_BY_SOURCE] == (family, source)


def _name(id_: str, plane: str = "engine") -> str:
    return (measures.ENGINE if plane == "engine" else measures.USAGE)[id_].name


_BY_REASON = {
    "lost_lines": "Lines lost",
    "quarantined_records": "Records quarantined",
    "unpriced_requests": "Requests without a price",
}
_INFO = {
    "engine_version": "Engine version",
    "metric_map": "Metric map",
    "model": "Model",
    "prefix_caching": "Prefix caching",
    "hash_algorithm": "Hash algorithm",
}
