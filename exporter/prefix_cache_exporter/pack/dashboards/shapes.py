"""grafanalib's shapes, mended: what it writes stems from Grafana before 9, and Grafana 13 no longer provisions all of it.

Thin subclasses only. Each keeps grafanalib's common part, sets `options` and `fieldConfig` in today's form (classic v1
JSON, schemaVersion 39 as Grafana 10.3 writes it), and drops the keys that Grafana has forgotten.
"""

from __future__ import annotations

from typing import Any

import attr
from grafanalib import core

SCHEMA_VERSION = 39
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
"""Every panel, target, variable and annotation reads the data source that the reader chose."""

_FORGOTTEN = frozenset({
    # panels
    "cacheTimeout", "editable", "error", "height", "hideTimeOverride", "maxPerRow", "minSpan", "repeatDirection", "span",
    # targets
    "intervalFactor", "metric", "query", "step", "target",
    # variables
    "auto", "auto_count", "auto_min", "tagValuesQuery", "tags", "tagsQuery", "useTags",
    # dashboards
    "__inputs", "gnetId", "hideControls", "rows", "sharedCrosshair", "style",
})  # fmt: skip


@attr.s(kw_only=True)
class Query(core.Target):
    """A PromQL target."""

    exemplar = attr.ib(default=False)

    def to_json_data(self) -> dict[str, Any]:
        """The target in today's form: a range or an instant, never both."""
        json: dict[str, Any] = super().to_json_data()
        json |= {"datasource": DATASOURCE, "range": not self.instant, "exemplar": self.exemplar, "editorMode": "code"}
        return mended(json)


@attr.s(kw_only=True)
class Visual(core.Panel):
    """A panel of any kind.

    Attributes:
        kind: Grafana's panel type.
        options: the panel kind's own options.
        defaults: `fieldConfig.defaults`.
        overrides: `fieldConfig.overrides`.
    """

    kind = attr.ib()
    options = attr.ib(factory=dict)
    defaults = attr.ib(factory=dict)
    overrides = attr.ib(factory=list)

    def to_json_data(self) -> dict[str, Any]:
        """The panel in today's form."""
        json: dict[str, Any] = super().panel_json({"type": self.kind, "options": self.options})
        json["datasource"] = DATASOURCE
        json["fieldConfig"] = {"defaults": self.defaults, "overrides": self.overrides}
        if not self.transformations:
            del json["transformations"]
        if not self.targets:
            del json["targets"]
        return mended(json)


@attr.s(kw_only=True)
class Row(core.RowPanel):
    """A heading; its panels follow it, or lie in it where it is collapsed."""

    def to_json_data(self) -> dict[str, Any]:
        """The row in today's form."""
        return {
            "type": "row",
            "id": self.id,
            "title": self.title,
            "collapsed": self.collapsed,
            "gridPos": self.gridPos,
            "panels": self.panels,
        }


@attr.s(kw_only=True)
class Variable(core.Template):
    """A variable that asks Prometheus, anew with every change of the time range."""

    def to_json_data(self) -> dict[str, Any]:
        """The variable in today's form; a fresh dashboard starts at All, or at the first value."""
        json: dict[str, Any] = mended(super().to_json_data())
        json["current"] = {"text": ["All"], "value": ["$__all"]} if self.includeAll else {}
        if self.type == "query":
            asked = {"query": self.query, "refId": f"variable-{self.name}"}
            json |= {"datasource": DATASOURCE, "query": asked, "definition": self.query}
        return json


@attr.s(kw_only=True)
class Board(core.Dashboard):
    """A dashboard."""

    def to_json_data(self) -> dict[str, Any]:
        """The dashboard in today's form: provisioning-ready, nothing to fill in."""
        json: dict[str, Any] = mended(super().to_json_data())
        return {**json, "id": None, "fiscalYearStartMonth": 0, "liveNow": False, "weekStart": ""}


def mended(json: dict[str, Any]) -> dict[str, Any]:
    """Without the keys that Grafana has forgotten, and without those that say nothing."""
    return {key: value for key, value in json.items() if key not in _FORGOTTEN and value is not None}


def value_override(name: str, *properties: tuple[str, Any]) -> dict[str, Any]:
    """An override of one field by its name."""
    return {
        "matcher": {"id": "byName", "options": name},
        "properties": [{"id": id_, "value": value} for id_, value in properties],
    }


def query_override(ref: str, *properties: tuple[str, Any]) -> dict[str, Any]:
    """An override of everything that one target returned."""
    return {
        "matcher": {"id": "byFrameRefID", "options": ref},
        "properties": [{"id": id_, "value": value} for id_, value in properties],
    }
