"""The status page as one HTML document: no script, no request to anywhere, every value text."""

from __future__ import annotations

import base64
import hashlib
import time
from pathlib import Path
from typing import TYPE_CHECKING

from .markup import document, sparkline, tag
from .view import RECENT_SECONDS, SPARK_SECONDS, SPARK_STEPS, Quotient, build

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from xml.etree.ElementTree import Element

    from prefix_cache_exporter.recorder import Recorder

    from .history import History
    from .view import RatioView, SourceView

REFRESH_SECONDS = 10
STYLE = (Path(__file__).parent / "style.css").read_text(encoding="utf-8")
_DIGEST = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
POLICY = (
    f"default-src 'none'; style-src 'sha256-{_DIGEST}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The Content-Security-Policy that the page is served with: its own style and nothing else."""

_PERCENT = "{:.1%}"
_TIMES = {"usage_write_back": "{:,.2f}"}
"""Ratios that are no part of a whole: how many times over."""
_UNITS = {"currency": ""}


class StatusPage:
    """Renders the page from what the recorder has committed."""

    def __init__(
        self,
        recorder: Recorder,
        history: History,
        *,
        version: str,
        links: Sequence[tuple[str, str]],
        describe_caveat: Callable[[str], str] = str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._recorder, self._history, self._clock = recorder, history, clock
        self._version, self._links, self._describe = version, links, describe_caveat

    def render(self) -> bytes:
        """The document of now."""
        now = self._clock()
        views = build(
            self._recorder.exposed(),
            total=self._history.total(),
            recent=self._history.increase(RECENT_SECONDS),
            steps=self._history.steps(SPARK_STEPS, SPARK_SECONDS),
            now=now,
            describe_caveat=self._describe,
        )
        head = tag(
            "head",
            tag("meta", charset="utf-8"),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", http_equiv="refresh", content=REFRESH_SECONDS),
            tag("title", _title(views)),
            tag("style", STYLE),
        )
        links = [tag("a", text, href=target) for text, target in self._links]
        header = tag("header", tag("h1", "prefix-cache-exporter"), tag("span", self._version, class_="soft"))
        header.append(tag("nav", *links))
        body = tag("body", header, tag("main", *_sources(views)), _footer(now))
        return document(tag("html", head, body, lang="en"))


def _title(views: Sequence[SourceView]) -> str:
    bad = sum(view.tone == "bad" for view in views)
    return f"prefix cache: {bad} of {len(views)} sources need a look" if bad else f"prefix cache: {len(views)} sources"


def _sources(views: Sequence[SourceView]) -> Iterable[Element]:
    if not views:
        return [tag("section", "No source has been configured, or none has been looked at yet.")]
    return [_source(view) for view in sorted(views, key=lambda view: (view.tone != "bad", view.name))]


def _source(view: SourceView) -> Element:
    notes = [tag("span", note.text, class_=f"note {note.tone}") for note in view.state]
    planes = tag("span", " and ".join(view.planes), class_="soft")
    section = tag("section", tag("div", tag("h2", view.name), planes, *notes, class_="head"), class_=view.tone)
    facts = [*view.facts, ("Release in force", ", ".join(view.releases) or "nobody said")]
    section.append(tag("dl", *[tag("div", tag("dt", title), tag("dd", text)) for title, text in facts]))
    if view.ratios:
        section.append(_table(view.ratios))
    else:
        section.append(tag("p", "No ratio yet: nothing has been counted.", class_="soft"))
    if view.caveats:
        section.append(_list("Caveats of this engine version", view.caveats, open_="open"))
    if view.withheld:
        section.append(_list(f"Withheld measures ({len(view.withheld)})", view.withheld))
    return section


def _list(title: str, rows: Iterable[tuple[str, str]], open_: str | None = None) -> Element:
    items = [tag("li", tag("b", name), f": {text}") for name, text in rows]
    return tag("details", tag("summary", title), tag("ul", *items), open_=open_)


def _table(ratios: Iterable[RatioView]) -> Element:
    titles = ("Ratio", "Last 5 minutes", "Since counting began", "Last half hour")
    head = tag("thead", tag("tr", *[tag("th", title) for title in titles]))
    return tag("table", head, tag("tbody", *[_row(ratio, titles) for ratio in ratios]))


def _row(view: RatioView, titles: Sequence[str]) -> Element:
    ratio = view.ratio
    what = tag("div", f"Out of {ratio.counted}.", class_="sides")
    return tag(
        "tr",
        tag("td", ratio.title, what, class_="ratio", title=f"Not in the denominator: {ratio.left_out}."),
        tag("td", *_quotient(view.recent, view), data_title=titles[1]),
        tag("td", *_quotient(view.total, view), data_title=titles[2]),
        tag("td", sparkline(view.spark, f"{ratio.title} by minute"), data_title=titles[3]),
    )


def _quotient(quotient: Quotient, view: RatioView) -> tuple[Element, Element]:
    value, unit = quotient.value, view.unit
    if value is None:
        shown = "not known" if quotient.unknown else "no traffic"
    else:
        shown = _TIMES.get(view.ratio.id, _PERCENT).format(value)
    sides = f"{_amount(quotient.numerator, unit)} / {_amount(quotient.denominator, unit)} {_UNITS.get(unit, unit)}"
    return tag("div", shown, class_="value"), tag("div", sides, class_="sides")


def _amount(amount: float, unit: str) -> str:
    return f"{amount:,.4f}" if unit == "currency" else f"{amount:,.0f}"


def _footer(now: float) -> Element:
    when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now))
    return tag(
        "footer",
        f"As of {when}; refreshes every {REFRESH_SECONDS} s. Both planes may see the same request: never add them.",
    )
