from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from .fetch import FetchError
from .versions import parse_version

if TYPE_CHECKING:
    from collections.abc import Callable

    from .fetch import Fetched

ASK_SECONDS = 60.0
"""How often a server that answers all the time is asked for its version again."""


class Source(Protocol):
    """What is asked of a server."""

    def fetch(self) -> Fetched:
        """The metrics page."""

    def version(self) -> str:
        """What `/version` says."""

    def close(self) -> None:
        """Lets go of connections."""


class VersionMismatchError(ValueError):
    """Configuration and server name different versions.

    Attributes:
        pinned: what configuration says.
        answered: what the server says.
    """

    def __init__(self, pinned: str, answered: str) -> None:
        self.pinned, self.answered = pinned, answered
        super().__init__(f"version: got {answered} from the server, expected {pinned} as configured")


class EngineVersion:
    """The version of one server, asked for as rarely as is safe.

    A server cannot come back with another version without having been away: it is asked after every failed poll, after
    a restart that the page showed, and now and then.

    Args:
        pinned: what configuration says; None where it says nothing.
        ask: asks the server.
        clock: monotonic seconds.
        means: whether an answer says which release a server is, or leads to. A build from source may call itself
            `dev`, or `0.1.dev1+g1a2b3c4` where its checkout had no tags: that is no version to differ from.

    Attributes:
        just_asked: whether the server was asked when the version was last wanted.
    """

    def __init__(
        self,
        pinned: str | None,
        ask: Callable[[], str],
        clock: Callable[[], float] = time.monotonic,
        *,
        means: Callable[[str], bool] = lambda _: True,
    ) -> None:
        self._pinned, self._ask, self._clock, self._means = pinned, ask, clock, means
        self._answered: str | None = None
        self._asked_at: float | None = None
        self.just_asked = False

    @property
    def last(self) -> str | None:
        """What the server has said of late, else what configuration says."""
        return self._answered or self._pinned

    def doubt(self) -> None:
        """The server may have been replaced: what it said before counts no more."""
        self._answered = self._asked_at = None

    def current(self) -> str | None:
        """The version; None where neither configuration nor server tells.

        Raises:
            VersionMismatchError: where they tell differently.
        """
        now = self._clock()
        self.just_asked = self._asked_at is None or now - self._asked_at >= ASK_SECONDS
        if self.just_asked:
            # A server without `/version` is asked again next time; one that has answered before is believed.
            with suppress(FetchError):
                self._answered, self._asked_at = self._ask(), now
        if self._pinned is None or self._answered is None:
            return self.last
        if _same(self._pinned, self._answered):
            return self._answered
        if self._means(self._answered):
            raise VersionMismatchError(self._pinned, self._answered)
        return self._pinned


def _same(one: str, other: str) -> bool:
    versions = parse_version(one), parse_version(other)
    return one == other if None in versions else versions[0] == versions[1]
