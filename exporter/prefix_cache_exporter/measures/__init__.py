"""The one catalogue: every family on the exporter's page and every ratio made of them.

HELP texts, rules, dashboards, `report`, the status page and the documentation read it; none writes a name again.
"""

from __future__ import annotations

from types import MappingProxyType

from . import engine, exporter, usage
from .family import Family, Kind, Plane, Ratio
from .ratios import RATIOS

__all__ = ["ENGINE", "EXPORTER", "FAMILIES", "RATIOS", "USAGE", "Family", "Kind", "Plane", "Ratio"]

ENGINE = MappingProxyType({family.id: family for family in engine.FAMILIES})
"""Engine-plane families by measure id."""
USAGE = MappingProxyType({family.id: family for family in usage.FAMILIES})
"""Usage-plane families by measure id."""
EXPORTER = MappingProxyType({family.id: family for family in exporter.FAMILIES})
"""Release and health families by id."""
FAMILIES = MappingProxyType({f.name: f for f in (*engine.FAMILIES, *usage.FAMILIES, *exporter.FAMILIES)})
"""Every family by its name on the wire."""
