"""The demo's plot: what is released when, and what to look at."""

from __future__ import annotations

from dataclasses import dataclass

from .prompts import SUPPORT_R41, SUPPORT_R42, SUPPORT_R43, Revision


@dataclass(frozen=True, slots=True)
class Chapter:
    """A part of the story.

    Attributes:
        title: what happens.
        look: what to look at meanwhile.
        revision: the revision of the support template that is released as it begins.
        seconds: how long it lasts; the last chapter stays.
    """

    title: str
    look: str
    revision: Revision
    seconds: float


COLD_WINDOW_SECONDS = 15.0
"""How long after its first traffic each release of the demo is expected to be cold."""

CHAPTERS = (
    Chapter(
        "warm and healthy",
        "Nearly all prompt tokens come from the cache: every tenant's prefix has been computed once.",
        SUPPORT_R41,
        35.0,
    ),
    Chapter(
        "release r42 appends a paragraph at the end of the support template",
        "The servers start with empty caches: reuse dips and recovers within the cold window. Nobody is paged.",
        SUPPORT_R42,
        30.0,
    ),
    Chapter(
        "release r43 puts a timestamp in front of the support template",
        "No two prompts begin alike any more. Reuse does not come back, and after the cold window somebody is paged.",
        SUPPORT_R43,
        40.0,
    ),
    Chapter(
        "roll-back to r42",
        "One more cold window, and reuse is back. The page resolves.",
        SUPPORT_R42,
        30.0,
    ),
)
