"""Requests that are still merging."""

from __future__ import annotations

import msgspec

from prefix_cache_exporter.usage.record import Fragment  # noqa: TC001  # msgspec reads annotations

from .overlay import overlay


class Open(msgspec.Struct, gc=False):
    """A request that is still merging."""

    fragment: Fragment
    touched: float


class Pending:
    """Open requests by key, those silent longest first.

    Args:
        most: how many there should be; whoever lays a line over one closes the first beyond it.
        settle_seconds: how long one whose output is final waits for more lines.
        idle_seconds: how long any other does.
    """

    def __init__(self, most: int, settle_seconds: float, idle_seconds: float) -> None:
        self.most = most
        self._patience = {True: settle_seconds, False: max(settle_seconds, idle_seconds)}
        self.held: dict[bytes, Open] = {}

    def lay(self, key: bytes, fragment: Fragment, now: float) -> Fragment:
        """Lays a line over what is known of its request; gives all that is known then."""
        held = self.held.pop(key, None)
        if held is None:
            held = Open(fragment, now)
        else:
            overlay(held.fragment, fragment)
            held.touched = now
        self.held[key] = held  # at the end: the front has been silent longest
        return held.fragment

    def due(self, now: float) -> list[bytes]:
        """Keys of those that have been silent for long enough, also where the clock was set back by more than that."""
        longest = self._patience[False]
        return [
            key
            for key, held in self.held.items()
            if now - held.touched >= self._patience[held.fragment.closed] or now < held.touched - longest
        ]
