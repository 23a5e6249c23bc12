"""Stable uids of the dashboards, which links in alerts lead to."""

from __future__ import annotations

OVERVIEW = "prefix-cache-overview"
RELEASE = "prefix-cache-release"
ENGINE = "prefix-cache-engine"
USAGE = "prefix-cache-usage"
TRUST = "prefix-cache-trust"
EXPORTER = "prefix-cache-exporter"
