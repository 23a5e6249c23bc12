from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.engine.maps import load_maps

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_ERRS = {
    "over": "The number may be too high",
    "under": "The number may be too low",
    "either": "The number may be too high or too low",
    "none": "The number reads differently than elsewhere",
}


def caveats_in_words(folders: Iterable[Path] = ()) -> dict[str, str]:
    """What each caveat of any map means, in sentences for a person.

    Raises:
        DocumentError: for a map that cannot be used.
    """
    maps = load_maps(folders)
    found: dict[str, str] = {}
    for version in maps.files:
        resolved = maps.resolve(version)
        for dialect in resolved.dialects if resolved else ():
            for caveat in dialect.caveats.values():
                found[caveat.id] = f"{caveat.counts[:1].upper()}{caveat.counts[1:]}. {_ERRS[caveat.errs]}."
    return found
