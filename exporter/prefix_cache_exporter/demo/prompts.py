"""The prompt templates of the demo, and what each revision does to the prompts that they render.

A word is a token here. Which words come first is all that prefix caching cares about.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Revision:
    """One revision of a template.

    Attributes:
        template: the template's name.
        name: the revision's name.
        instructions: words of the system prompt.
        appended: words that this revision adds at the end of it.
        timestamp_in_front: whether the prompt begins with the time of day.
    """

    template: str
    name: str
    instructions: int
    appended: int = 0
    timestamp_in_front: bool = False

    @property
    def shared_tokens(self) -> int:
        """Tokens at the beginning of all prompts that ought to be shared: what the template is meant to be."""
        return self.instructions + self.appended

    def render(self, question: Iterable[str], now: float) -> list[int]:
        """The tokens of one prompt.

        Args:
            question: what the user asks, word by word.
            now: seconds since 1970.
        """
        front = ["the", "time", "is", f"{now:.3f}"] if self.timestamp_in_front else []
        system = [f"{self.template}-rule-{number}" for number in range(self.instructions)]
        added = [f"{self.template}-addition-{number}" for number in range(self.appended)]
        return [crc32(word.encode()) for word in (*front, *system, *added, *question)]


SEARCH_R7 = Revision("search", "r7", instructions=900)
SUPPORT_R41 = Revision("support", "r41", instructions=1_800)
SUPPORT_R42 = Revision("support", "r42", instructions=1_800, appended=88)
SUPPORT_R43 = Revision("support", "r43", instructions=1_800, appended=88, timestamp_in_front=True)
REVISIONS = (SEARCH_R7, SUPPORT_R41, SUPPORT_R42, SUPPORT_R43)
