"""A page line by line: which series each line is, remembered from poll to poll, and its value, read anew.

An engine writes the same series text at every poll and only the values move. So prometheus-client's text parser is
asked once per series text (it alone knows escapes, quoted names and all other forms), and from then on a line costs a
look-up and a float. Whatever does not look exactly like before goes to the parser again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from prometheus_client.parser import text_string_to_metric_families

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from prometheus_client import Metric

Dialect = Literal["text", "openmetrics"]

SUFFIXES = ("_total", "_created", "_bucket", "_sum", "_count", "_gsum", "_gcount", "_info")
"""What a sample name may add to its family's name."""
_NAME = re.compile("[a-zA-Z_:][a-zA-Z0-9_:]*")
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
    """Equal for series of the same name and key, within a reader."""


@dataclass(frozen=True, slots=True)
class Metadata:
    """A HELP or TYPE line."""

    kind: Literal["HELP", "TYPE"]
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Comment:
    """A line that begins with `#`: its metadata if it has any, and whether it may speak of a wanted family."""

    metadata: Metadata | None
    kept: bool


@dataclass(slots=True)
class Scan:
    """What the lines of one page say, in page order; `series` and `values` run in parallel."""

    series: list[Series] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    metadata: list[Metadata] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    """Every sample name on the page."""
    cut: list[str] = field(default_factory=list)
    """Lines of candidate families, metadata included."""
    skeleton: list[str] = field(default_factory=list)
    """The cut without values; equal skeletons have the same families, series and order."""
    blank: int = 0
    """The number of the first blank line, 0 if there is none."""


class LineError(ValueError):
    """A line that is neither sample nor comment.

    Attributes:
        line: its number, from 1.
    """

    def __init__(self, line: int, why: str) -> None:
        self.line = line
        super().__init__(f"line {line}: {why}")


class LineReader:
    """Reads lines, and remembers series texts between pages.

    Args:
        wanted: families whose samples are kept. Other lines are read too: a page with one broken line is a broken page.
    """

    def __init__(self, wanted: Collection[str]) -> None:
        self._wanted = frozenset(wanted)
        self._series: dict[str, Series] = {}
        self._others: dict[str, str] = {}
        self._comments: dict[str, Comment] = {}
        self._identities: dict[tuple[str, tuple[tuple[str, str], ...]], int] = {}
        self._candidates: dict[str, bool] = {}

    def scan(self, lines: list[str], *, keep_cut: bool) -> Scan:
        """Reads all lines of a page.

        Args:
            lines: the page's lines without line feeds.
            keep_cut: whether `cut` and `skeleton` are wanted.

        Raises:
            LineError: for the first line that prometheus-client's text parser refuses.
        """
        self._forget(len(lines))
        scan = Scan()
        series_of, other_of, comment_of = self._series.get, self._others.get, self._comments.get
        add_series, add_value, add_name = scan.series.append, scan.values.append, scan.names.add
        for number, line in enumerate(lines, 1):
            if line[:1] == "#":
                self._take(comment_of(line) or self._comment(number, line), line, scan, keep_cut=keep_cut)
                continue
            text, _, digits = line.rpartition(" ")
            series = series_of(text)
            name = other_of(text) if series is None else series.name
            value = None if name is None else _number(digits)
            if name is None or value is None:
                self._read(number, line, scan, keep_cut=keep_cut)
                continue
            add_name(name)
            if series is None:
                continue
            add_series(series)
            add_value(value)
            if keep_cut:
                scan.cut.append(line)
                scan.skeleton.append(text)
        return scan

    def is_candidate(self, name: str) -> bool:
        """Whether a sample or metadata of this name may belong to a wanted family."""
        known = self._candidates.get(name)
        if known is None:
            bases = (name, f"{name}_info", *(name.removesuffix(suffix) for suffix in SUFFIXES))
            known = self._candidates[name] = not self._wanted.isdisjoint(bases)
        return known

    def _forget(self, lines: int) -> None:
        bound = max(_FORGET_FLOOR, _FORGET_ABOVE * lines)
        if len(self._series) + len(self._others) + len(self._comments) > bound:
            for memory in (self._series, self._others, self._comments, self._identities, self._candidates):
                memory.clear()

    def _read(self, number: int, line: str, scan: Scan, *, keep_cut: bool) -> None:
        """Reads a sample that is not remembered, or a line that only turns out to be something else."""
        if not line or line.isspace():
            scan.blank = scan.blank or number
            return
        families = _parse(number, line)
        if not families or not families[0].samples:
            self._take(self._comment(number, line), line, scan, keep_cut=keep_cut)  # a comment behind white space
            return
        sample = families[0].samples[0]
        text, _, digits = line.rpartition(" ")
        # A time stamp or an exemplar would make the text before the last space a different one at every poll.
        remembered = sample.timestamp is None and _number(digits) is not None
        scan.names.add(sample.name)
        if not self.is_candidate(sample.name):
            if line.startswith("{") or _NAME.fullmatch(sample.name):
                if remembered:
                    self._others[text] = sample.name
            elif keep_cut:  # a name that only the text parser lets pass; the other will say so
                scan.cut.append(line)
                scan.skeleton.append(line)
            return
        key = tuple(sorted((name, value) for name, value in sample.labels.items() if value))
        identity = self._identities.setdefault((sample.name, key), len(self._identities))
        series = Series(sample.name, MappingProxyType(sample.labels), key, identity)
        if remembered:
            self._series[text] = series
        scan.series.append(series)
        scan.values.append(float(sample.value))
        if keep_cut:
            scan.cut.append(line)
            scan.skeleton.append(text if remembered else line)

    @staticmethod
    def _take(comment: Comment, line: str, scan: Scan, *, keep_cut: bool) -> None:
        if comment.metadata:
            scan.metadata.append(comment.metadata)
        if keep_cut and comment.kept:
            scan.cut.append(line)
            scan.skeleton.append(line)

    def _comment(self, number: int, line: str) -> Comment:
        families = _parse(number, line)  # none where a quote swallows the keyword
        words = line.split(None, 2)
        comment = Comment(None, kept=True)  # OpenMetrics knows no free comments; its parser will say so
        if len(words) == 3 and words[1] in _KEYWORDS and (families or words[1] == "UNIT"):  # noqa: PLR2004  # "#" first
            name = _first_word(words[2])
            metadata = None
            if words[1] == "TYPE":
                metadata = Metadata("TYPE", name, families[0].type)
            elif words[1] == "HELP":
                metadata = Metadata("HELP", name, families[0].documentation)
            comment = Comment(metadata, kept=self.is_candidate(name))
        self._comments[line] = comment
        return comment


def _number(digits: str) -> float | None:
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
    if not text.startswith('"'):
        return text.split(None, 1)[0]
    name, escaped = [], False
    for character in text[1:]:
        if escaped:
            name.append({"n": "\n", '"': '"', "\\": "\\"}.get(character, f"\\{character}"))
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == '"':
            break
        else:
            name.append(character)
    return "".join(name)
