"""What is known of each file that its lines take for granted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping


class Scope(msgspec.Struct, gc=False):
    """What is known of one file that its lines take for granted."""

    current: bytes | None = None
    session: str | None = None
    model: str | None = None
    provider: str | None = None
    sums: dict[str, int] | None = None
    told: bool = False  # whether lines of their own tell what its sums repeat
    parent: str | None = None  # whose sums it repeats before its own
    met: bool = False  # whether some of those had been counted before
    thread: str | None = None  # whose sums the lines that follow go on with, in whatever file

    def learn(self, context: Mapping[str, str]) -> None:
        """Takes in what a line said of those that follow it.

        A fork repeats its ancestors' first lines after its own: the last before any sums is that of whom all of them
        come from.
        """
        for name, value in context.items():
            if name not in {"session", "parent"} or self.sums is None:
                setattr(self, name, value)


class Scopes:
    """The files of a source by name, those that a line came from last at the end; at most `most` of them."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.known: dict[str, Scope] = {}

    def of(self, name: str) -> Scope:
        """What is known of a file; nothing yet of a new one, for which the longest silent one is forgotten."""
        scope = self.known.pop(name, None)
        if scope is None:
            scope = Scope()
            if len(self.known) >= self.most:
                del self.known[next(iter(self.known))]
        self.known[name] = scope
        return scope

    def forget(self, name: str) -> Scope | None:
        """What was known of a file that is done."""
        return self.known.pop(name, None)
