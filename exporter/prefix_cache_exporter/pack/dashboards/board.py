"""A dashboard put together: its question, variables, sections, links to the others, and release marks."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grafanalib._gen import DashboardEncoder
from grafanalib.core import Annotations, DashboardLink, Templating, Time

from prefix_cache_exporter.pack.records import releases

from .layout import packed
from .shapes import DATASOURCE, SCHEMA_VERSION, Board

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grafanalib.core import Template

    from prefix_cache_exporter.pack.names import Names

    from .layout import Section

TAG = "prefix-cache"
MARKED = 'source=~"$source",model=~"$model",template=~"$template"'


@dataclass(frozen=True, slots=True)
class Question:
    """A dashboard answers one question.

    Attributes:
        uid: stable; alerts and links name it.
        title: what it is called in the list.
        text: the question.
        hours: how far back it looks when it is opened.
    """

    uid: str
    title: str
    text: str
    hours: int = 6


def board(
    names: Names,
    question: Question,
    variables: Sequence[Template],
    sections: Sequence[Section],
    *,
    marks: str | None = MARKED,
) -> str:
    """The dashboard's JSON text; `marks` are the matchers of the releases to mark in time."""
    built = Board(
        title=f"Prefix cache / {question.title}",
        uid=question.uid,
        description=question.text,
        tags=[TAG],
        editable=False,
        schemaVersion=SCHEMA_VERSION,
        graphTooltip=1,
        timezone="browser",
        refresh="1m",
        version=1,
        time=Time(f"now-{question.hours}h", "now"),
        templating=Templating(list(variables)),
        annotations=Annotations([] if marks is None else [_release_marks(names, marks)]),
        links=[_link()],
        panels=packed(sections),
    )
    encoded = json.loads(json.dumps(built.to_json_data(), cls=DashboardEncoder))
    return json.dumps(encoded, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _link() -> DashboardLink:
    return DashboardLink(includeVars=True, keepTime=True, tags=[TAG], title="Prefix cache", type="dashboards")


def _release_marks(names: Names, matchers: str) -> dict[str, Any]:
    """A mark at the first traffic of each revision, which Grafana wants in milliseconds.

    https://grafana.com/docs/grafana/latest/datasources/prometheus/annotations/
    """
    series = releases.first_traffic(names)
    return {
        "name": "First traffic of a revision",
        "datasource": DATASOURCE,
        "enable": True,
        "hide": False,
        "iconColor": "purple",
        "expr": f"{series}{{{matchers}}} * 1000",
        "step": "60s",
        "titleFormat": "{{template}} {{template_revision}}",
        "textFormat": "first traffic ({{source}}, {{model}})",
        "useValueForTime": True,
    }
