"""A `/metrics` body to the families that a map names, in either dialect.

Families are put together by name, wherever their lines stand; a body that is cut, broken or ambiguous is refused whole.
Time stamps and exemplars are ignored: a sample is its value now.
"""

from __future__ import annotations

from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING

from .layout import Layout, Page, PageError, PageFamily, Sample
from .lines import Dialect, LineError
from .openmetrics import Validator
from .scan import Scanner

if TYPE_CHECKING:
    from collections.abc import Collection

    from .scan import Scan

__all__ = ["Page", "PageError", "PageFamily", "PageReader", "Sample", "dialect_of", "read_page"]

_EOF = "# EOF"
_OPENMETRICS = "application/openmetrics-text"


class PageReader:
    """Reads pages of one target, faster after the first: it remembers series texts. Safe for threads.

    Args:
        wanted: names of the families to read, as `PageFamily.name` has them.
        created: whether `PageFamily.created` is filled.
    """

    def __init__(self, wanted: Collection[str], *, created: bool = True) -> None:
        self._wanted = frozenset(wanted)
        self._created = created
        self._scanner = Scanner(wanted)
        self._validator = Validator()
        self._layout: Layout | None = None
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
            scan = self._scan(lines)
            if self._layout is None or self._layout.structure is not scan.structure:
                self._layout = Layout(scan.structure, self._wanted, created=self._created)
            if dialect == "openmetrics":
                self._validate(scan)
            page = self._layout.fill(scan.values, dialect)
        if not page.names:
            raise PageError("empty", "no families")
        return page

    def _scan(self, lines: list[str]) -> Scan:
        try:
            return self._scanner.scan(lines)
        except LineError as error:
            raise PageError("malformed", str(error)) from error

    def _validate(self, scan: Scan) -> None:
        if scan.structure.blank:
            raise PageError("malformed", f"line {scan.structure.blank}: blank")
        try:
            self._validator.check(scan)
        except ValueError as error:
            raise PageError("malformed", " ".join(str(error).split())[:160] or "not openmetrics") from error


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
        if text.lstrip()[:1] in ("{", "[", "<"):
            raise PageError("malformed", "begins like JSON or HTML")
        raise PageError("truncated", "the last line has no end")
    return lines
