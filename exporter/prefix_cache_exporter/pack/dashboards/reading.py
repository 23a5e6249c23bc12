"""What the dashboards ask: recorded series where one exists, narrowed by variables, summed before divided."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from prefix_cache_exporter import measures
from prefix_cache_exporter.pack import queries
from prefix_cache_exporter.pack.names import families, ratio_kept, ratio_named
from prefix_cache_exporter.pack.records import rates

from .variables import NAMESPACE, RELEASE, chosen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prefix_cache_exporter.measures import Family, Ratio
    from prefix_cache_exporter.pack.durations import Duration
    from prefix_cache_exporter.pack.model import Series
    from prefix_cache_exporter.pack.names import Names

RATE = "$__rate_interval"


class Sides(NamedTuple):
    """A ratio's three expressions."""

    quotient: str
    numerator: str
    denominator: str


@dataclass(frozen=True, slots=True)
class Reader:
    """Builds expressions for one pack file.

    Attributes:
        names: names of recorded series.
        namespaces: whether the dashboard has a variable for namespaces.
    """

    names: Names
    namespaces: bool = False

    @property
    def narrowed(self) -> tuple[str, ...]:
        """Labels that the reader's variables choose."""
        return (*RELEASE, NAMESPACE) if self.namespaces else RELEASE

    @property
    def short(self) -> Duration:
        """The window of "now"."""
        return self.names.settings.windows.short

    def recorded(self, series: Series, *matchers: str) -> str:
        """A recorded series, narrowed by every variable whose label it has."""
        return queries.select(series.name, *chosen(self.narrowed, series.labels), *matchers)

    def raw(self, family: Family, *matchers: str, part: str = "") -> str:
        """A family of the exporter's page, narrowed likewise, and by the pack file's selector."""
        name = f"{family.name}{part}" if part else family.series_name
        return queries.select(name, self.names.settings.selector, *chosen(self.narrowed, family.labels), *matchers)

    def rated(self, family: Family, *matchers: str, part: str = "") -> str:
        """Per-second increase of a family that no rule records at these labels."""
        return f"rate({self.raw(family, *matchers, part=part)}[{RATE}])"

    def rate(self, plane: str, id_: str, by: Iterable[str] = (), window: Duration | None = None) -> str:
        """Recorded rate of a measure, summed by some labels."""
        return summed(by, self.each(plane, id_, window))

    def each(
        self, plane: str, id_: str, window: Duration | None, *matchers: str, kept: tuple[str, ...] | None = None
    ) -> str:
        """Recorded rate of a measure, series by series; read from pods where the pack file has no rule record it."""
        family = families(plane)[id_]
        if self.namespaces and not self.names.settings.namespaces:
            return self._of_pods(family, str(window) if window else RATE, *matchers)
        level = "namespace" if self.namespaces else "template_revision"
        return self.recorded(self.names.rate(family, window or self.short, level=level, kept=kept), *matchers)

    def _of_pods(self, family: Family, window: str, *matchers: str) -> str:
        wholes = [families(family.plane)[id_] for id_ in rates.whole_of(family.plane, family.id)]
        read = [f"rate({self.raw(one, *matchers)}[{window}])" for one in (family, *wholes)]
        return " or ".join([read[0], *(f"{whole} * 0" for whole in read[1:])])

    def sides(self, ratio_id: str, by: Iterable[str] = (), window: Duration | None = None) -> Sides:
        """A ratio over the reader's selection: both sides summed by some labels, then divided.

        Where the numerator is no part of the denominator, it counts only where the denominator is counted: what one
        provider read from its cache says nothing about what another one wrote to its own.
        """
        ratio = ratio_named(ratio_id)
        labels = (*by, *ratio_kept(ratio))
        sides = []
        for side in (ratio.numerator, ratio.denominator):
            parts = [self.rate(ratio.plane, id_, labels, window) for id_ in side]
            expr = parts[0]
            for part in parts[1:]:
                expr = queries.known_sum(expr, part)
            sides.append(expr)
        if not ratio.part and not ratio.together:
            top, bottom = (
                self.each(ratio.plane, id_, window, kept=ratio_kept(ratio))
                for (id_,) in (ratio.numerator, ratio.denominator)
            )
            sides[0] = summed(labels, f"{top} and {bottom}")
        return Sides(queries.ratio(*sides), *sides)

    def ratio(self, ratio_id: str, window: Duration | None = None, *, level: str = "template_revision") -> str:
        """A recorded ratio, one line per template revision (or namespace)."""
        return self.recorded(self.names.ratio(ratio_named(ratio_id), window or self.short, level=level))

    def derived(self, ratio_id: str, operation: str, level: str = "template_revision") -> str:
        """What the rules derive from a ratio: its baseline, what is expected of it."""
        return self.recorded(self.names.of_ratio(ratio_named(ratio_id), operation, level=level))

    def lines(self) -> str:
        """Log lines read per second: what counts of bad records are 0 beside."""
        return self.recorded(self.names.rate(measures.USAGE["lines"], self.short, level="source"))

    def quantile(self, share: float, family: Family, by: Iterable[str] = (), *, window: Duration | str = RATE) -> str:
        """A quantile of a histogram; absent, not NaN, where nothing was observed."""
        labels = tuple(by)
        buckets, count = (
            summed(kept, f"rate({self.raw(family, part=part)}[{window}])")
            for kept, part in ((("le", *labels), "_bucket"), (labels, "_count"))
        )
        return f"histogram_quantile({queries.number(share)}, {buckets}) and ({count} > 0)"

    def mean(self, family: Family) -> str:
        """Mean of a histogram's observations."""
        return queries.ratio(*(summed((), self.rated(family, part=part)) for part in ("_sum", "_count")))

    def spread(self, family: Family) -> str:
        """A histogram's buckets, per interval; absent where nothing was observed."""
        buckets = f"sum by (le) (increase({self.raw(family, part='_bucket')}[{RATE}]))"
        count = f"sum(increase({self.raw(family, part='_count')}[{RATE}]))"
        return f"{buckets} and on () ({count} > 0)"

    def zero_where(self, expr: str, base: str, label: str) -> str:
        """A count of bad things: 0 where its base metric exists and nothing bad was counted, else absent."""
        return f'{expr} or on () label_replace({summed((), base)} * 0, "{label}", "none", "", "")'


def hourly(expr: str) -> str:
    """A rate per hour: what happens seldom reads as `3 /h`, not as `0.0008 /s`."""
    return f"({expr}) * 3600"


def summed(by: Iterable[str], expr: str) -> str:
    """A sum that keeps some labels, or none."""
    labels = tuple(dict.fromkeys(by))
    return queries.total(labels, expr) if labels else f"sum({expr})"


def ratio_of(id_: str) -> Ratio:
    """The catalogue's ratio of this id."""
    return ratio_named(id_)
