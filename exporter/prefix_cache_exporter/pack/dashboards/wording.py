"""States, caveats and reasons in words, from the maps that define them."""

from __future__ import annotations

from .panels import BAD, GOOD, PLAIN, WARN


def state_words() -> dict[str, tuple[str, str]]:
    """States of a metric map."""
    return {
        "verified": ("verified: page and map agree, and the version is known", GOOD),
        "unverified": ("unverified: page and map agree, but nobody has checked this version", WARN),
        "mismatch": ("mismatch: the page contradicts the map; nothing is counted", BAD),
        "unknown": ("unknown: no version, or none that a map speaks of; nothing is counted", BAD),
    }


def caveat_words() -> dict[str, tuple[str, str]]:
    """Caveats of every map, by id."""
    from prefix_cache_exporter.engine.caveats import sentences

    return {id_: (sentence, PLAIN) for id_, sentence in sorted(sentences().items())}


def withheld_words() -> dict[str, tuple[str, str]]:
    """Reasons for withholding a measure."""
    from prefix_cache_exporter.engine.caveats import reasons

    return {reason: (sentence, PLAIN) for reason, sentence in sorted(reasons().items())}
