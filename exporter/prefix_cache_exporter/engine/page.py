"""A `/metrics` body to the families that a map names, in either dialect.

Families are put together by name, wherever their lines stand; a body that is cut, broken or ambiguous is refused whole.
Time stamps and exemplars are ignored: a sample is its value now.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING

from .lines import LineError, LineReader
from .names import Owner, family_name, owner_of
from .openmetrics import Validator

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from .lines import Dialect, Scan, Series

_EOF = "# EOF"
_OPENMETRICS = "application/openmetrics-text"
_NOBODY = Owner("", "")
"""Owns samples that are left out."""


class PageError(ValueError):
    """A body that is not one whole, unambiguous page.

    Attributes:
        reason: `empty`, `truncated`, `encoding`, `malformed` or `duplicate`.
        detail: where and what.
    """

    def __init__(self, reason: str, detail: str) -> None:
        self.reason, self.detail = reason, detail
        super().__init__(f"{reason}: {detail}")


@dataclass(frozen=True, slots=True)
class Sample:
    """One value.

    Attributes:
        name: as in OpenMetrics: a counter's ends with `_total` in both dialects.
        labels: label values by name; the same object at every poll while the series text stays the same.
        value: also NaN or infinite, where the page says so.
    """

    name: str
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class PageFamily:
    """One metric family.

    Attributes:
        name: without `_total` for counters, with `_info` for infos, in both dialects.
        type: as declared; `unknown` where the page does not say.
        help: as declared, else empty.
        samples: in page order, `_created` left out.
        created: the `_created` values, as seconds since 1970 by sorted labels (a histogram's without `le`).
    """

    name: str
    type: str
    help: str
    samples: tuple[Sample, ...]
    created: Mapping[tuple[tuple[str, str], ...], float] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Page:
    """What a body says.

    Attributes:
        families: the wanted families that are on the page, also those declared without samples.
        names: every family on the page, named as in `families`.
        format: the body's format. Which one vLLM answers tells its front ends apart.
    """

    families: Mapping[str, PageFamily]
    names: frozenset[str]
    format: Dialect = "text"


class PageReader:
    """Reads pages of one target, faster after the first: it remembers series texts. Safe for threads.

    Args:
        wanted: names of the families to read, as `PageFamily.name` has them.
        created: whether `PageFamily.created` is filled.
    """

    def __init__(self, wanted: Collection[str], *, created: bool = True) -> None:
        self._wanted = frozenset(wanted)
        self._created = created
        self._lines = LineReader(wanted)
        self._validator = Validator()
        self._types: dict[str, str] = {}
        self._owners: dict[str, Owner] = {}
        self._aliases: frozenset[str] = frozenset()
        self._lock = Lock()

    def read(self, body: bytes, content_type: str | None) -> Page:
        """Reads one body.

        Args:
            body: the decompressed body.
            content_type: the response's header; the `# EOF` trailer is believed over it.

        Raises:
            PageError: where the body is not one whole, unambiguous page.
        """
        text = _decode(body)
        dialect = dialect_of(text, content_type)
        lines = _whole_lines(text, dialect)
        with self._lock:
            page = self._assemble(self._scan(lines, dialect), dialect)
        if not page.names:
            raise PageError("empty", "no families")
        return page

    def _scan(self, lines: list[str], dialect: Dialect) -> Scan:
        openmetrics = dialect == "openmetrics"
        try:
            scan = self._lines.scan(lines, keep_cut=openmetrics)
        except LineError as error:
            raise PageError("malformed", str(error)) from error
        if len({series.identity for series in scan.series}) < len(scan.series):
            raise PageError("duplicate", f"{_first_twice(scan.series)} stands twice")
        if openmetrics:
            if scan.blank:
                raise PageError("malformed", f"line {scan.blank}: blank")
            try:
                self._validator.check(scan)
            except ValueError as error:
                raise PageError("malformed", _one_line(error)) from error
        return scan

    def _assemble(self, scan: Scan, dialect: Dialect) -> Page:
        types, helps = self._declarations(scan)
        if types != self._types:
            self._types, self._owners = types, {}
        owners = {name: self._owners.get(name) or self._own(name) for name in scan.names}
        for name, owner in owners.items():
            if owner.sample != name and owner.sample in owners and owner.family in self._wanted:
                raise PageError("duplicate", f"{name} and {owner.sample} are one counter")
        samples: dict[str, list[Sample]] = {name: [] for name in self._wanted if name in types}
        created: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
        for series, value in zip(scan.series, scan.values, strict=True):
            owner = owners[series.name]
            if owner.family not in self._wanted:
                continue
            if not owner.created:
                samples.setdefault(owner.family, []).append(Sample(owner.sample, series.labels, value))
            elif self._created:
                created.setdefault(owner.family, {})[series.key] = value
        families = {
            name: PageFamily(
                name,
                types.get(name, "unknown"),
                helps.get(name, ""),
                tuple(found),
                MappingProxyType(created.get(name, {})),
            )
            for name, found in samples.items()
        }
        names = {name for name in types if name.removesuffix("_created") not in types or not name.endswith("_created")}
        names.update(owner.family for owner in owners.values() if owner is not _NOBODY)
        return Page(MappingProxyType(families), frozenset(names), dialect)

    def _declarations(self, scan: Scan) -> tuple[dict[str, str], dict[str, str]]:
        """Types and helps by family name. The first of each counts; types of wanted families may not differ."""
        types: dict[str, str] = {}
        self._aliases = _aliases(scan)
        for line in scan.metadata:
            if line.kind == "TYPE" and line.name not in self._aliases:
                name = family_name(line.name, line.value)
                if types.setdefault(name, line.value) != line.value and name in self._wanted:
                    raise PageError("malformed", f"{name} is declared as {types[name]} and as {line.value}")
        helps: dict[str, str] = {}
        for line in scan.metadata:
            if line.kind == "HELP":
                bases = (line.name, line.name.removesuffix("_total"), f"{line.name}_info")
                name = next((base for base in bases if base in types), bases[1])
                types.setdefault(name, "unknown")
                helps.setdefault(name, line.value)
        return types, helps

    def _own(self, name: str) -> Owner:
        known = _NOBODY if name in self._aliases else owner_of(name, self._types, self._wanted)
        owner = self._owners[name] = known
        return owner


def _aliases(scan: Scan) -> frozenset[str]:
    """Gauges that repeat a counter under its name without `_total`; the counter is read.

    Ray exports every counter so: https://github.com/ray-project/ray/pull/43795.
    """
    declared = {(line.name, line.value) for line in scan.metadata if line.kind == "TYPE"}
    return frozenset(name for name, type_ in declared if type_ == "gauge" and (f"{name}_total", "counter") in declared)


def dialect_of(text: str, content_type: str | None) -> Dialect:
    """The format of a body: as its trailer says, else as its header says, else Prometheus text."""
    media_type = (content_type or "").partition(";")[0].strip().lower()
    if media_type == _OPENMETRICS or text.removesuffix("\n").rpartition("\n")[2] == _EOF:
        return "openmetrics"
    return "text"


def read_page(body: bytes, content_type: str | None, wanted: Collection[str], created: bool = True) -> Page:
    """Reads one body; `PageReader.read` with a reader kept per set of wanted families."""
    return _reader(frozenset(wanted), created).read(body, content_type)


@lru_cache(maxsize=16)
def _reader(wanted: frozenset[str], created: bool) -> PageReader:
    return PageReader(wanted, created=created)


def _decode(body: bytes) -> str:
    if not body or body.isspace():
        raise PageError("empty", "no text")
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise PageError("encoding", f"byte {error.start} is not utf-8") from error


def _whole_lines(text: str, dialect: Dialect) -> list[str]:
    """The lines of a body that came whole."""
    lines = text.split("\n")
    last = lines.pop()
    if dialect == "openmetrics":
        # The trailer's own line feed is optional: https://prometheus.io/docs/specs/om/open_metrics_spec/#abnf
        trailer = last or lines.pop()
        if trailer != _EOF:
            raise PageError("truncated", "no # EOF at the end")
        if _EOF in lines:
            raise PageError("malformed", f"line {lines.index(_EOF) + 2}: text after # EOF")
    elif last:
        raise PageError("truncated", "the last line has no end")
    return lines


def _first_twice(series: list[Series]) -> str:
    [(name, key), _] = Counter((each.name, each.key) for each in series).most_common(1)[0]
    return name + "".join(f" {label}={value!r}" for label, value in key)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:160] or "not openmetrics"
