"""What reading gives away: lines, and whatever must be stored or counted together with them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from prefix_cache_exporter.usage.pieces import Piece


@dataclass(frozen=True, slots=True)
class Batch:
    """What one step of reading gave; its cursors must be stored together with what its lines led to.

    Attributes:
        lines: whole log lines without their ends.
        lost: lines that will never come, by reason.
        lost_files: files that went away or turned unreadable before their end, by reason.
        cursors: positions to store by name; None forgets one.
        log: names the log that the lines are of, over restarts and rotations.
        ended: logs to which nothing will be added, after these lines.
    """

    lines: Sequence[bytes] = ()
    lost: Mapping[str, int] = field(default_factory=dict)
    lost_files: Mapping[str, int] = field(default_factory=dict)
    cursors: Mapping[str, bytes | None] = field(default_factory=dict)
    log: str = ""
    ended: tuple[str, ...] = ()


class Notes:
    """Gathers what the next batch carries beside its lines."""

    def __init__(self) -> None:
        self._lost_files: Counter[str] = Counter()
        self._cursors: dict[str, bytes | None] = {}
        self._ended: list[str] = []

    def __bool__(self) -> bool:
        return bool(self._lost_files or self._cursors or self._ended)

    def lose(self, reason: str) -> None:
        """Counts a file that will not be read to its end."""
        self._lost_files[reason] += 1

    def store(self, key: int, payload: bytes | None) -> None:
        """Has a position stored; None forgets it."""
        self._cursors[str(key)] = payload

    def end(self, key: int) -> None:
        """Says that nothing will be added to a log."""
        self._ended.append(str(key))

    def batch(self, piece: Piece, log: str = "") -> Batch:
        """Gives everything away with what was read of a log."""
        batch = Batch(piece.lines, piece.lost, self._lost_files, self._cursors, log, tuple(self._ended))
        self._lost_files, self._cursors, self._ended = Counter(), {}, []
        return batch
