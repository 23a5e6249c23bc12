"""Single lines of a page: what each says, remembered from poll to poll.

An engine writes the same series text at every poll and only the values move. So prometheus-client's text parser is
asked once per series text (it alone knows escapes, quoted names and all other forms), and from then on a line costs a
look-up and a float. Whatever does not look exactly like before goes to the parser again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

from prometheus_client.parser import text_string_to_metric_families

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from prometheus_client import Metric

Dialect = Literal["text", "openmetrics"]

SUFFIXES = ("_total", "_created", "_bucket", "_sum", "_count", "_gsum", "_gcount", "_info")
"""What a sample name may add to its family's name."""
_NAME = re.compile("[a-zA-Z_:][a-zA-Z0-9_:]*")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r'\\([\\n"])')
_KEYWORDS = ("HELP", "TYPE", "UNIT")

_FORGET_ABOVE = 4
"""Texts remembered per line of the page; beyond it something in them changes at every poll, and all are forgotten."""
_FORGET_FLOOR = 4_000


@dataclass(frozen=True, slots=True)
class Series:
    """One series of a candidate family."""

    name: str
    labels: Mapping[str, str]
    key: tuple[tuple[str, str], ...]
    """Labels in name order, without those of empty value: to Prometheus they are absent."""
    identity: int
    """Equal for series of the same name and key, within a memory."""


@dataclass(frozen=True, slots=True)
class Metadata:
    """A HELP or TYPE line."""

    kind: Literal["HELP", "TYPE"]
    name: str
    value: str


class Line(NamedTuple):
    """What one line says.

    Attributes:
        kept: whether it may speak of a wanted family, or is odd enough to be looked at by the OpenMetrics parser.
        metadata: of a HELP or TYPE line.
        name: of a sample; empty for other lines.
        series: of a sample of a candidate family.
        value: of a sample.
        steady: whether the text before the last space is a name with labels and nothing else.
    """

    kept: bool
    metadata: Metadata | None = None
    name: str = ""
    series: Series | None = None
    value: float = 0.0
    steady: bool = False


class LineError(ValueError):
    """A line that is neither sample nor comment.

    Attributes:
        line: its number, from 1.
    """

    def __init__(self, line: int, why: str) -> None:
        self.line = line
        super().__init__(f"line {line}: {why}")


class LineMemory:
    """Reads lines, and remembers their texts between pages.

    Args:
        wanted: families whose series are kept. Other lines are read too: a page with one broken line is a broken page.
    """

    def __init__(self, wanted: Collection[str]) -> None:
        self._wanted = frozenset(wanted)
        self._series: dict[str, Series] = {}
        self._others: dict[str, str] = {}
        self._comments: dict[str, Line] = {}
        self._identities: dict[tuple[str, tuple[tuple[str, str], ...]], int] = {}
        self._candidates: dict[str, bool] = {}

    def forget(self, lines: int) -> None:
        """Forgets everything once it is far more than a page of so many lines needs."""
        bound = max(_FORGET_FLOOR, _FORGET_ABOVE * lines)
        if len(self._series) + len(self._others) + len(self._comments) > bound:
            for memory in (self._series, self._others, self._comments, self._identities, self._candidates):
                memory.clear()

    def read(self, number: int, line: str, text: str, digits: str) -> Line:
        """Reads a line that is not blank.

        Args:
            number: of the line, from 1.
            line: without its line feed.
            text: the line before its last space.
            digits: the line after it.

        Raises:
            LineError: where prometheus-client's text parser refuses it.
        """
        if line[:1] == "#":
            return self._comments.get(line) or self._comment(number, line)
        series = self._series.get(text)
        name = self._others.get(text) if series is None else series.name
        value = None if name is None else number_of(digits)
        if name is None or value is None:
            return self._sample(number, line, text, digits)
        return Line(series is not None, None, name, series, value, steady=True)

    def _sample(self, number: int, line: str, text: str, digits: str) -> Line:
        families = _parse(number, line)
        if not families or not families[0].samples:  # a comment behind white space
            return self._comment(number, line)
        sample = families[0].samples[0]
        value = float(sample.value)
        # A time stamp or an exemplar would make the text before the last space a different one at every poll.
        steady = sample.timestamp is None and number_of(digits) is not None
        if self._is_candidate(sample.name):
            key = tuple(sorted((name, text) for name, text in sample.labels.items() if text))
            identity = self._identities.setdefault((sample.name, key), len(self._identities))
            series = Series(sample.name, MappingProxyType(sample.labels), key, identity)
            if steady:
                self._series[text] = series
            return Line(True, None, sample.name, series, value, steady)
        if not line.startswith("{") and not _NAME.fullmatch(sample.name):
            return Line(True, None, sample.name)  # a name that only the text parser lets pass
        if steady:
            self._others[text] = sample.name
        return Line(False, None, sample.name, None, value, steady)

    def _comment(self, number: int, line: str) -> Line:
        families = _parse(number, line)  # none where a quote swallows the keyword
        words = line.split(None, 2)
        found = Line(kept=True)  # OpenMetrics knows no free comments; its parser will say so
        if len(words) == 3 and words[1] in _KEYWORDS and (families or words[1] == "UNIT"):  # noqa: PLR2004  # "#" first
            name = _first_word(words[2])
            metadata = None
            if words[1] == "TYPE":
                metadata = Metadata("TYPE", name, families[0].type)
            elif words[1] == "HELP":
                metadata = Metadata("HELP", name, families[0].documentation)
            found = Line(self._is_candidate(name), metadata)
        self._comments[line] = found
        return found

    def _is_candidate(self, name: str) -> bool:
        """Whether a sample or metadata of this name may belong to a wanted family."""
        known = self._candidates.get(name)
        if known is None:
            bases = (name, f"{name}_info", *(name.removesuffix(suffix) for suffix in SUFFIXES))
            known = self._candidates[name] = not self._wanted.isdisjoint(bases)
        return known


def number_of(digits: str) -> float | None:
    """The number that this is in both formats, or None."""
    # `float` alone would take "1_000" and surrounding white space, which the formats do not know.
    if "_" in digits or not digits.isprintable():
        return None
    try:
        return float(digits)
    except ValueError:
        return None


def _parse(number: int, line: str) -> list[Metric]:
    try:
        return list(text_string_to_metric_families(line))
    except (ValueError, IndexError) as error:
        raise LineError(number, " ".join(str(error).split())[:120] or "not a sample") from error


def _first_word(text: str) -> str:
    """The name that a HELP, TYPE or UNIT line begins with, unquoted where it is quoted."""
    quoted = _QUOTED.match(text)
    if quoted is None:
        return text.split(None, 1)[0]
    return _ESCAPE.sub(lambda match: "\n" if match[1] == "n" else match[1], quoted[1])
