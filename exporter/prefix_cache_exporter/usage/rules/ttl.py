"""Writes by time to live."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.usage.record import NOTHING

if TYPE_CHECKING:
    from collections.abc import Mapping


def by_ttl(write: int | None, split: Mapping[str, int] | None) -> tuple[Mapping[str, int], bool]:
    """Writes by time to live, what no part names under `unknown`; and whether the parts exceed the whole.

    Parts that exceed the whole are no split: the whole is kept, the parts are not.
    """
    if not write:
        return NOTHING, bool(write == 0 and split and any(split.values()))
    parts = {ttl: count for ttl, count in split.items() if count} if split else {}
    rest = write - sum(parts.values())
    if rest < 0:
        return NOTHING, True
    if rest:
        parts["unknown"] = parts.get("unknown", 0) + rest
    return parts, False
