"""Every dashboard by its file name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.pack.names import Names

from . import engine, health, overview, release, trust, usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prefix_cache_exporter.pack.settings import Settings

MODULES = {
    "overview": overview,
    "release": release,
    "engine": engine,
    "usage": usage,
    "trust": trust,
    "health": health,
}


def dashboard_files(settings: Settings) -> Mapping[str, str]:
    """File names and JSON of the six dashboards."""
    names = Names(settings)
    return {f"{name}.json": module.make(names) for name, module in MODULES.items()}
