"""What OpenMetrics forbids beyond a line's syntax, decided by prometheus-client's parser.

The parser is slow, and most of what it checks (families, groups, order, metadata) cannot change while the page without
its values stays the same. So it is asked once per such skeleton; afterwards only the values are held against the few
rules that speak of values. Where they do not hold, the parser is asked again: this module never refuses by itself.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from prometheus_client.openmetrics.parser import text_string_to_metric_families

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prometheus_client import Metric

    from .scan import Scan

_FREE = {("counter", "_created"), ("gauge", ""), ("unknown", ""), ("histogram", "_created")}
_NOT_NEGATIVE = {("counter", "_total"), ("histogram", "_bucket"), ("histogram", "_count"), ("histogram", "_sum")}
_WHOLE = {("histogram", "_bucket"), ("histogram", "_count")}
_ONE = {("info", "_info")}
"""What values may be, by family type and suffix. Pages with anything else are left to the parser every time."""


class Validator:
    """Holds the cut of a page against OpenMetrics 1.0, and remembers the last one that passed."""

    def __init__(self) -> None:
        self._skeleton: list[str] | None = None
        self._not_negative: list[int] = []
        self._whole: list[int] = []
        self._one: list[int] = []
        self._rising: list[tuple[int, int]] = []
        self._equal: list[tuple[int, int]] = []

    def check(self, scan: Scan) -> None:
        """Passes a cut, or refuses it.

        Raises:
            ValueError: in the parser's words.
        """
        if scan.structure.skeleton == self._skeleton and self._plausible(scan.values):
            return
        self._skeleton = None
        try:
            text = "\n".join([*(scan.lines[index] for index in scan.structure.kept), "# EOF", ""])
            families = list(text_string_to_metric_families(text))  # type: ignore[no-untyped-call]  # it has no types
        except (AttributeError, LookupError, TypeError) as error:  # the parser's own slips over odd lines
            raise ValueError(f"{type(error).__name__} in the parser") from error
        # Where white space is missing, both dialects' parsers find a number, but not the same one.
        found = [float(sample.value) for family in families for sample in family.samples]
        if [*map(repr, found)] != [*map(repr, scan.values)]:
            raise ValueError("a line that can be read in two ways")
        if self._learn(scan, families):
            self._skeleton = scan.structure.skeleton

    def _learn(self, scan: Scan, families: Iterable[Metric]) -> bool:
        """Notes which values must hold what; False where that is not known for all of them."""
        owners = {sample.name: family for family in families for sample in family.samples}
        buckets: dict[object, list[int]] = {}
        counts: dict[object, int] = {}
        self._not_negative, self._whole, self._one = [], [], []
        for index, series in enumerate(scan.structure.series):
            family = owners[series.name]
            part = (family.type, series.name[len(family.name) :])
            if part not in _FREE | _NOT_NEGATIVE | _ONE:
                return False
            for rule, indices in ((_NOT_NEGATIVE, self._not_negative), (_WHOLE, self._whole), (_ONE, self._one)):
                if part in rule:
                    indices.append(index)
            group = (family.name, tuple(pair for pair in series.key if pair[0] != "le"))
            if part == ("histogram", "_bucket"):
                buckets.setdefault(group, []).append(index)
            elif part == ("histogram", "_count"):
                counts[group] = index
        # The parser has seen that buckets stand in order and end with +Inf.
        self._rising = [pair for ladder in buckets.values() for pair in pairwise(ladder)]
        self._equal = [(ladder[-1], counts[group]) for group, ladder in buckets.items() if group in counts]
        return True

    def _plausible(self, values: list[float]) -> bool:
        return (
            all(values[index] >= 0 for index in self._not_negative)  # false for NaN
            and all(values[index].is_integer() for index in self._whole)  # false for infinities
            and all(values[index] == 1 for index in self._one)
            and all(values[lower] <= values[upper] for lower, upper in self._rising)
            and all(values[one] == values[other] for one, other in self._equal)
        )
