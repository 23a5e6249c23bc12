"""Versions as vLLM servers and people write them: releases, posts, candidates, nightly builds, local builds.

The forms are those of https://packaging.python.org/en/latest/specifications/version-specifiers/ that occur.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_FORM = re.compile(
    r"v?(?P<release>\d+(?:\.\d+)*)"
    r"(?:[.\-_]?(?P<pre>(?:a|b|c|rc|alpha|beta|pre|preview)[.\-_]?\d*))?"
    r"(?:[.\-_]?post[.\-_]?(?P<post>\d+))?"
    r"(?:[.\-_]?(?P<dev>dev[.\-_]?\d*))?"
    r"(?:\+[a-z0-9]+(?:[.\-_][a-z0-9]+)*)?",
    re.IGNORECASE | re.ASCII,
)
_LONGEST = 200
"""No version is longer; Python itself refuses to read numbers of some thousand digits."""


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """A version, ordered by what code it may hold.

    Attributes:
        release: its numbers without trailing zeros.
        post: the number of a post-release, else -1.
        unfinished: whether it is a candidate or a development build. They are sorted with the release they lead to:
            vLLM's main branch carries the number of the next release.
    """

    release: tuple[int, ...]
    post: int = -1
    unfinished: bool = False

    @property
    def place(self) -> tuple[tuple[int, ...], int]:
        """Where the version stands among releases."""
        return (self.release, self.post)


def parse_version(text: str) -> Version | None:
    """The version that a text says, or None. A local part (`+cpu`, `+cu128`) is another build of the same version."""
    match = _FORM.fullmatch(text.strip()) if len(text) <= _LONGEST else None
    if not match:
        return None
    numbers = [int(number) for number in match["release"].split(".")]
    while len(numbers) > 1 and not numbers[-1]:
        numbers.pop()
    post = -1 if match["post"] is None else int(match["post"])
    return Version(tuple(numbers), post, match["pre"] is not None or match["dev"] is not None)
