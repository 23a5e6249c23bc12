"""States and caveats in words, from the maps that define them."""

from __future__ import annotations

from prefix_cache_exporter.engine.maps import load_maps
from prefix_cache_exporter.engine.words import caveat_sentences

from .panels import BAD, GOOD, WARN


def state_words() -> dict[str, tuple[str, str]]:
    """States of a metric map."""
    return {
        "verified": ("verified: page and map agree", GOOD),
        "unverified": ("unverified: they agree, but nobody has read this release", WARN),
        "mismatch": ("mismatch: the page contradicts the map", BAD),
        "unknown": ("unknown: no version, or no map for it", BAD),
    }


def caveat_words() -> dict[str, tuple[str, str]]:
    """Caveats of every shipped map, by id."""
    return {id_: (sentence, "text") for id_, sentence in sorted(caveat_sentences(load_maps()).items())}
