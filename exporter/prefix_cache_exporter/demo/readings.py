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

Totals = defaultdict[tuple[str, str], float]
"""Value by series name and source, summed over all other labels."""

_WIDTH = 100
_INDENTED: Mapping[str, Any] = {"initial_indent": "    ", "subsequent_indent": "    "}
_RATIOS = ("engine_population_hit", "usage_population_hit", "usage_eligible_prefix", "usage_request_hit")
_FAMILIES = {"engine": measures.ENGINE, "usage": measures.USAGE}


@dataclass(frozen=True, slots=True)
class Reading:
    """One ratio over one interval.

    Attributes:
        title: its name in the catalogue.
        numerator, denominator: what both sides grew by.
        unit: of both sides.
    """

    title: str
    numerator: float
    denominator: float
    unit: str

    def __str__(self) -> str:
        """The ratio with both sides; without a denominator there is none."""
        share = f"{self.numerator / self.denominator:6.1%}" if self.denominator else "  none"
        return f"{self.title:<31}{share} = {self.numerator:,.0f} / {self.denominator:,.0f} {self.unit}"


def legend() -> list[str]:
    """One line per ratio: what is divided by what, and what is left out."""
    return [
        f"{ratio.title} = {_words(ratio.numerator)} / {_words(ratio.denominator)}\n"
        + fill(f"Out of {ratio.counted}; without {ratio.left_out}.", _WIDTH, **_INDENTED)
        for ratio in _shown()
    ]


def totals(page: str) -> Totals:
    """The counters of a page, by source."""
    sums: Totals = defaultdict(float)
    for family in text_string_to_metric_families(page):
        if family.type != "counter":
            continue
        for sample in family.samples:
            if sample.name.endswith("_total") and "source" in sample.labels:
                sums[sample.name, sample.labels["source"]] += sample.value
    return sums


def readings(before: Totals, after: Totals, sources: Mapping[str, str]) -> list[Reading]:
    """The demo's ratios over the interval between two pages; sums first, quotients last.

    Args:
        before: the earlier page.
        after: the later page.
        sources: the source of each plane, `engine` and `usage`.
    """
    found = []
    for ratio in _shown():
        families = _FAMILIES[ratio.plane]
        numerator, denominator = (
            sum(_grown(before, after, (families[id_].series_name, sources[ratio.plane])) for id_ in side)
            for side in (ratio.numerator, ratio.denominator)
        )
        found.append(Reading(ratio.title, numerator, denominator, families[ratio.denominator[0]].unit))
    return found


def _shown() -> list[measures.Ratio]:
    return [ratio for ratio in measures.RATIOS if ratio.id in _RATIOS]


def _words(ids: tuple[str, ...]) -> str:
    return " + ".join(id_.replace("_", " ") for id_ in ids)


def _grown(before: Totals, after: Totals, series: tuple[str, str]) -> float:
    return after[series] - before[series]
