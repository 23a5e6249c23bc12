"""Who asks what, and when: the same requests in every run."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .prompts import Revision

NAMESPACES = {"retail": 14, "partners": 7, "internal": 3}
"""Trust groups and how many tenants each has. A tenant's prefixes are salted with its name and shared with nobody."""

_SHORTEST, _LONGEST = 40, 200
_GENERATED = (16, 48)


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request.

    Attributes:
        time: when it arrives, in seconds since 1970.
        namespace: the trust group that it comes from.
        tenant: who of that group.
        question: what is asked, word by word; no two questions begin alike.
        max_tokens: tokens to generate.
    """

    time: float
    namespace: str
    tenant: str
    question: tuple[str, ...]
    max_tokens: int

    def tokens(self, revision: Revision) -> list[int]:
        """The prompt as a template revision renders it."""
        return revision.render(self.question, self.time)


def arrivals(start: float, per_second: float, seed: int) -> Iterator[Arrival]:
    """Requests without end, at random moments with so many a second on average.

    Args:
        start: seconds since 1970.
        per_second: mean rate.
        seed: what makes the run this one.
    """
    chance = random.Random(seed)  # noqa: S311  # traffic, not secrets
    groups, tenants = zip(*NAMESPACES.items(), strict=True)
    time, number = start, 0
    while True:
        time += chance.expovariate(per_second)
        number += 1
        namespace = chance.choices(groups, tenants)[0]
        tenant = f"{namespace}-{chance.randrange(NAMESPACES[namespace])}"
        words = tuple(f"question-{seed}-{number}-{word}" for word in range(chance.randint(_SHORTEST, _LONGEST)))
        yield Arrival(time, namespace, tenant, words, chance.randint(*_GENERATED))
