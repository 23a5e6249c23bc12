"""Ratios as the demo prints them: both sides are what the sidecar's counters grew by since the last line."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any

from prometheus_client.parser import text_string_to_metric_families

from prefix_cache_exporter import measures

if TYPE_CHECKING:
    from collections.abc import Mapping

Totals = defaultdict[tuple[str, str, str], float]
"""Value by series name, source and template revision, summed over all other labels."""

_WIDTH = 100
_INDENTED: Mapping[str, Any] = {"initial_indent": "    ", "subsequent_indent": "    "}
_RATIOS = ("engine_population_hit", "usage_population_hit", "usage_eligible_prefix", "usage_request_hit")
_FAMILIES = {"engine": measures.ENGINE, "usage": measures.USAGE}


@dataclass(frozen=True, slots=True)
class Reading:
    """One ratio over one interval.

    Attributes:
        title: its name in the catalogue.
        numerator, denominator: what both sides grew by; the denominator is not 0.
        unit: of both sides.
    """

    title: str
    numerator: float
    denominator: float
    unit: str

    def __str__(self) -> str:
        """The ratio with both sides."""
        share = self.numerator / self.denominator
        return f"{self.title:<31}{share:6.1%} = {self.numerator:,.0f} / {self.denominator:,.0f} {self.unit}"


def legend() -> list[str]:
    """One line per ratio: what is divided by what, and what is left out."""
    return [
        f"{ratio.title} = {_words(ratio.numerator)} / {_words(ratio.denominator)}\n"
        + fill(f"Out of {ratio.counted}; without {ratio.left_out}.", _WIDTH, **_INDENTED)
        for ratio in _shown()
    ]


def totals(page: str) -> Totals:
    """The counters of a page, by source and template revision."""
    sums: Totals = defaultdict(float)
    for family in text_string_to_metric_families(page):
        if family.type != "counter":
            continue
        for sample in family.samples:
            if sample.name.endswith("_total") and "source" in sample.labels:
                revision = sample.labels.get("template_revision", "")
                sums[sample.name, sample.labels["source"], revision] += sample.value
    return sums


def revisions(before: Totals, after: Totals, sources: Mapping[str, str]) -> list[str]:
    """The template revisions that a ratio has anything new to say of."""
    names = sorted({revision for _, _, revision in after})
    return [name for name in names if any(readings(before, after, sources, name))]


def readings(before: Totals, after: Totals, sources: Mapping[str, str], revision: str | None = None) -> list[Reading]:
    """The demo's ratios over the interval between two pages; sums first, quotients last.

    Args:
        before: the earlier page.
        after: the later page.
        sources: the source of each plane, `engine` and `usage`.
        revision: the only template revision to speak of; all of them together where nothing is given.

    Returns:
        The ratios whose denominator grew. Without one there is no ratio.
    """
    found = []
    for ratio in _shown():
        families = _FAMILIES[ratio.plane]
        numerator, denominator = (
            sum(_grown(before, after, families[id_].series_name, sources[ratio.plane], revision) for id_ in side)
            for side in (ratio.numerator, ratio.denominator)
        )
        if denominator:
            found.append(Reading(ratio.title, numerator, denominator, families[ratio.denominator[0]].unit))
    return found


def _shown() -> list[measures.Ratio]:
    return [ratio for ratio in measures.RATIOS if ratio.id in _RATIOS]


def _words(ids: tuple[str, ...]) -> str:
    return " + ".join(id_.replace("_", " ") for id_ in ids)


def _grown(before: Totals, after: Totals, series: str, source: str, revision: str | None) -> float:
    return sum(
        value - before.get(key, 0.0)
        for key, value in after.items()
        if key[:2] == (series, source) and revision in {None, key[2]}
    )
