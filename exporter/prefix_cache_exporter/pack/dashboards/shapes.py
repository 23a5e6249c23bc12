"""grafanalib's shapes, mended: what it writes stems from Grafana before 9, and newer ones do not take all of it.

Thin subclasses only. Each keeps grafanalib's common part, sets `options` and `fieldConfig` in today's form (classic v1
JSON, schemaVersion 39 as Grafana 11.1 writes it), and drops the keys that Grafana has forgotten.
"""

from __future__ import annotations

from typing import Any

from grafanalib import core

SCHEMA_VERSION = 39
OLDEST_GRAFANA = "11.1.0"
"""Whose panel options these are. A panel that does not say so is taken for one of Grafana 6 and migrated; the XY chart
of Grafana before 11.1 knows other options (https://grafana.com/docs/grafana/latest/panels-visualizations/visualizations/xy-chart/)."""
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
"""Every panel, target, variable and annotation reads the data source that the reader chose."""

RATE_INTERVAL = "$__rate_interval"
MIN_STEP = "1m"
"""Queries that read counters themselves never look closer than at four scrapes of a minute (grafana/grafana#43720)."""

_FORGOTTEN = frozenset({
    # panels
    "cacheTimeout", "editable", "error", "height", "hideTimeOverride", "maxPerRow", "minSpan", "repeatDirection",
    "span",
    # targets
    "intervalFactor", "metric", "query", "step", "target",
    # variables
    "auto", "auto_count", "auto_min", "tagValuesQuery", "tags", "tagsQuery", "useTags",
    # dashboards
    "__inputs", "gnetId", "hideControls", "rows", "sharedCrosshair", "style", "timepicker",
})  # fmt: skip


class Query(core.Target):  # type: ignore[misc]  # grafanalib has no types
    """A PromQL target."""

    def to_json_data(self) -> dict[str, Any]:
        """The target in today's form: a range or an instant, never both."""
        json: dict[str, Any] = super().to_json_data()
        json |= {"datasource": DATASOURCE, "range": not self.instant, "exemplar": False, "editorMode": "code"}
        if RATE_INTERVAL in self.expr:
            # Grafana's rate interval is four times this, whatever scrape interval the data source was told.
            json["interval"] = MIN_STEP
        return mended(json)


class Visual(core.Panel):  # type: ignore[misc]  # grafanalib has no types
    """A panel of any kind.

    Attributes:
        kind: Grafana's panel type.
        options: the panel kind's own options.
        defaults: `fieldConfig.defaults`.
        overrides: `fieldConfig.overrides`.
    """

    def __init__(
        self,
        *,
        kind: str,
        options: dict[str, Any] | None = None,
        defaults: dict[str, Any] | None = None,
        overrides: list[dict[str, Any]] | None = None,
        **common: Any,
    ) -> None:
        super().__init__(**common)
        self.kind = kind
        self.options = options or {}
        self.defaults = defaults or {}
        self.overrides = overrides or []

    def to_json_data(self) -> dict[str, Any]:
        """The panel in today's form."""
        json: dict[str, Any] = super().panel_json({"type": self.kind, "options": self.options})
        json |= {"datasource": DATASOURCE, "pluginVersion": OLDEST_GRAFANA}
        json["fieldConfig"] = {"defaults": self.defaults, "overrides": self.overrides}
        if not self.transformations:
            del json["transformations"]
        return mended(json)


class Row(core.RowPanel):  # type: ignore[misc]  # grafanalib has no types
    """A heading; its panels follow it."""

    def to_json_data(self) -> dict[str, Any]:
        """The row in today's form."""
        return {
            "type": "row",
            "id": self.id,
            "title": self.title,
            "collapsed": False,
            "gridPos": self.gridPos,
            "panels": [],
        }


class Variable(core.Template):  # type: ignore[misc]  # grafanalib has no types
    """A variable that asks Prometheus, anew with every change of the time range."""

    def to_json_data(self) -> dict[str, Any]:
        """The variable in today's form; a fresh dashboard starts at All, or at the first value."""
        json: dict[str, Any] = mended(super().to_json_data())
        json["current"] = {"text": ["All"], "value": ["$__all"]} if self.includeAll else {}
        if self.type == "query":
            asked = {"query": self.query, "refId": f"variable-{self.name}"}
            json |= {"datasource": DATASOURCE, "query": asked, "definition": self.query}
        return json


class Board(core.Dashboard):  # type: ignore[misc]  # grafanalib has no types
    """A dashboard."""

    def to_json_data(self) -> dict[str, Any]:
        """The dashboard in today's form: provisioning-ready, nothing to fill in."""
        json: dict[str, Any] = mended(super().to_json_data())
        return {
            **json,
            "id": None,
            "editable": self.editable,
            "fiscalYearStartMonth": 0,
            "liveNow": False,
            "weekStart": "",
        }


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
