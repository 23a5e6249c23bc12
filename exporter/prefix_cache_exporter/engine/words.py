"""Caveats in words, for people who read a page or a dashboard."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .maps import MapSet


def caveat_sentences(maps: MapSet) -> dict[str, str]:
    """What each caveat of any map says, by id. Where maps word one differently, the newest one speaks."""
    found: dict[str, str] = {}
    for name in maps.files:
        version = maps.resolve(name)
        for dialect in version.dialects if version else ():
            found |= {caveat.id: _sentence(caveat.counts) for caveat in dialect.caveats.values()}
    return found


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."
