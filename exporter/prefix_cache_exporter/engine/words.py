"""Caveats in words, for people who read a page or a dashboard."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .maps import MapSet
    from .records import Caveat

_ERRS = {
    "over": "The number may be too high",
    "under": "The number may be too low",
    "either": "The number may be too high or too low",
    "none": "The number reads differently than elsewhere",
}


def caveat_sentences(maps: MapSet) -> dict[str, str]:
    """What each caveat of any map means, by id. Where maps word one differently, the newest one speaks."""
    found: dict[str, str] = {}
    for name in maps.files:
        version = maps.resolve(name)
        for dialect in version.dialects if version else ():
            found |= {caveat.id: _sentence(caveat) for caveat in dialect.caveats.values()}
    return found


def _sentence(caveat: Caveat) -> str:
    return f"{caveat.counts[:1].upper()}{caveat.counts[1:].rstrip('.')}. {_ERRS[caveat.errs]}."
