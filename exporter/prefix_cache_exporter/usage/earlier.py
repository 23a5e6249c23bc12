"""What an earlier configuration of a source has left in the state, and what of it still holds."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from .merge import state
from .merge.merger import Merger
from .record import Quarantined

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from prefix_cache_exporter.config.model import UsageSource

    from .maps.model import UsageMap
    from .record import Outcome

_PATTERNS, _FORMAT = "patterns", "format"
"""Names of cursors beside the positions of logs, which have numbers."""
_MERGING = "merging"
FORMAT_GONE = "format_gone"


class Earlier(NamedTuple):
    """What a source finds of itself.

    Attributes:
        marks: what it says of its configuration to the next one, as cursors of its logs.
        resumed: whether the same patterns were looked at before.
        outcomes: what became of records that were open under another format: the new one's rule is not theirs.
        parts: what its merger stored, without these.
        changed: which of the parts are others by that; None for one that is gone.
    """

    marks: Mapping[str, bytes]
    resumed: bool
    outcomes: Sequence[Outcome]
    parts: Mapping[str, bytes]
    changed: Mapping[str, bytes | None]


def look_back(
    source: UsageSource,
    logs: Mapping[str, bytes],
    parts: Mapping[str, bytes],
    find: Callable[[str], UsageMap | None],
) -> Earlier:
    """Holds a source's configuration against what it left in the state.

    Args:
        source: the configuration of now.
        logs: stored cursors of its logs.
        parts: what its merger stored.
        find: gives a format's map; None where there is none any more.
    """
    patterns = blake2b("\0".join(source.paths).encode(errors="surrogateescape"), digest_size=8).digest()
    marks = {_PATTERNS: patterns, _FORMAT: source.format.encode()}
    resumed = logs.get(_PATTERNS) == patterns
    before = logs.get(_FORMAT, marks[_FORMAT]).decode()
    if before == source.format or _MERGING not in parts:
        return Earlier(marks, resumed, (), parts, {})
    outcomes, changed = _settled(source, parts, find(before))
    changed[_MERGING] = None
    left = {**parts, **changed}
    return Earlier(marks, resumed, outcomes, {name: part for name, part in left.items() if part is not None}, changed)


def _settled(
    source: UsageSource, parts: Mapping[str, bytes], usage_map: UsageMap | None
) -> tuple[Sequence[Outcome], dict[str, bytes | None]]:
    if usage_map is None:
        return [Quarantined(FORMAT_GONE)] * len(state.decode(parts[_MERGING]).opened), {}
    merger = Merger(usage_map, input_includes_cache=source.input_includes_cache, dedupe_records=source.dedupe_records)
    merger.load(parts)
    return merger.settle(0.0, everything=True), merger.changes()
