"""Recording rules, one idea per module; `groups` puts them in the order in which they read each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.pack.model import Group

from . import baseline, cost, evidence, exporter, fingerprints, latency, namespaces, pressure, rates, releases

if TYPE_CHECKING:
    from prefix_cache_exporter.pack.names import Names


def groups(names: Names) -> dict[str, tuple[Group, ...]]:
    """Every recording group by the file it goes to.

    Groups run side by side, rules of a group one after the other: what reads a series stands behind it in the same
    group, or can wait one interval for it.
    """
    engine = Group("prefix-cache-engine", (*rates.short(names, "engine"), *baseline.records(names, "engine")))
    engine_windows = Group("prefix-cache-engine-windows", (*rates.longer(names, "engine"), *pressure.records(names)))
    usage = Group(
        "prefix-cache-usage",
        (*namespaces.short(names), *rates.short(names, "usage"), *baseline.records(names, "usage")),
    )
    usage_windows = Group(
        "prefix-cache-usage-windows",
        (
            *rates.longer(names, "usage"),
            *namespaces.longer(names),
            *cost.records(names),
            *evidence.records(names),
        ),
    )
    return {
        "engine-records": (engine,),
        "engine-windows": (engine_windows,),
        "usage-records": (usage,),
        "usage-windows": (usage_windows,),
        "usage-latency": (Group("prefix-cache-usage-latency", latency.records(names)),),
        "usage-fingerprints": (Group("prefix-cache-usage-fingerprints", fingerprints.records(names)),),
        "release-records": (Group("prefix-cache-release", releases.records(names)),),
        "exporter-records": (Group("prefix-cache-exporter", exporter.records(names)),),
    }
