"""Durations as Prometheus writes them."""

from __future__ import annotations

import re
from functools import total_ordering

_UNITS = {"w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
_PART = re.compile(r"(\d+)(ms|[wdhms])")


@total_ordering
class Duration:
    """A span of time in whole milliseconds, printed as PromQL reads it (`59m30s`)."""

    __slots__ = ("milliseconds",)

    def __init__(self, milliseconds: int) -> None:
        self.milliseconds = milliseconds

    @classmethod
    def parse(cls, text: str) -> Duration:
        """Reads `1h30m`.

        Raises:
            ValueError: where the text is not a duration above zero.
        """
        parts = _PART.findall(text)
        total = sum(int(count) * _UNITS[unit] for count, unit in parts)
        if "".join(count + unit for count, unit in parts) != text or not total:
            raise ValueError(f"got {text!r}, expected a duration above zero like 1h30m")
        return cls(total)

    @property
    def seconds(self) -> float:
        """The span in seconds."""
        return self.milliseconds / 1000

    def per(self, step: Duration) -> int:
        """How many steps fit into the span, at least one."""
        return max(1, self.milliseconds // step.milliseconds)

    def __str__(self) -> str:
        rest, text = self.milliseconds, ""
        for unit in ("d", "h", "m", "s", "ms"):
            count, rest = divmod(rest, _UNITS[unit])
            text += f"{count}{unit}" if count else ""
        return text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Duration) and self.milliseconds == other.milliseconds

    def __lt__(self, other: Duration) -> bool:
        return self.milliseconds < other.milliseconds

    def __hash__(self) -> int:
        return hash(self.milliseconds)
