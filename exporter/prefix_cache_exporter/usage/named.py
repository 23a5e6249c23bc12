"""What of a usage object may be kept for people to look at: what its map names, and nothing else."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from .maps.model import UsageMap


def known_names(usage_map: UsageMap) -> frozenset[str]:
    """The names of numbers that a map reads, and of the objects that hold them."""
    paths = [*chain(*usage_map.tokens.values(), *usage_map.write_by_ttl.values()), *usage_map.read_parts]
    names = {step for path in paths for step in path.steps}
    if usage_map.modalities is not None:
        names.update(usage_map.modalities.keys.values(), *(path.steps for path in usage_map.modalities.at))
    return frozenset(name for name in names if isinstance(name, str))


def without_others(usage: Mapping[str, Any], names: Container[str]) -> dict[str, Any]:
    """A usage object without what a map does not name: a key that nobody knows may be a text itself, or a tenant."""
    return {
        key: without_others(value, names) if isinstance(value, dict) else value
        for key, value in usage.items()
        if key in names
    }
