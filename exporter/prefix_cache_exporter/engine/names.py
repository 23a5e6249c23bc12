"""Families by one name in both dialects, and which family a sample name belongs to.

Prometheus text declares a counter as `x_total` and an info as the gauge `x_info`; OpenMetrics declares `x` for both.
Here a counter is `x` and an info is `x_info`, whatever the page says and also where it says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_PARTS = {
    "_total": ("counter", "unknown"),
    "_bucket": ("histogram", "gaugehistogram"),
    "_sum": ("histogram", "summary"),
    "_count": ("histogram", "summary"),
    "_gsum": ("gaugehistogram",),
    "_gcount": ("gaugehistogram",),
}
"""Suffixes of sample names, and the family types that have them. `_created` and `_info` are dealt with by name."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The family that samples of one name belong to, what they are called there, and whether they are start times."""

    family: str
    sample: str
    created: bool = False


def owner_of(name: str, types: Mapping[str, str], wanted: Collection[str]) -> Owner:
    """The owner of samples called `name`, given the page's types by family name."""
    base = name.removesuffix("_created")
    if base != name and name not in wanted and (base in types or base in wanted):
        return Owner(base, name, created=True)
    if name in types:
        return Owner(name, f"{name}_total" if types[name] == "counter" else name)
    for suffix, having in _PARTS.items():
        base = name.removesuffix(suffix)
        type_ = types.get(base, "unknown")
        # Without a type only the name tells, and `_sum` may be a gauge's own.
        if base != name and (type_ in having or (type_ == "unknown" and base in wanted)):
            return Owner(base, name)
    return Owner(name, name)


def family_name(declared: str, type_: str) -> str:
    """What a family is called in either dialect, from its name and type in a TYPE line."""
    if type_ in ("counter", "unknown"):
        return declared.removesuffix("_total")
    if type_ == "info":
        return f"{declared.removesuffix('_info')}_info"
    return declared
