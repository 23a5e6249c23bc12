"""Kubernetes container logs: `<time> <stream> <P|F>[:tag…] <text>`, long lines cut into parts.

https://github.com/kubernetes/design-proposals-archive/blob/8da1442ea29adccea40693357d04727127e045ed/node/kubelet-cri-logging.md
"""

from __future__ import annotations

import re

import msgspec

LINE = re.compile(rb"\d{4}-\d\d-\d\dT\S+ (stdout|stderr) ([PF])(?::\S*)? ?(.*)", re.DOTALL)
"""Time, stream, whether more parts follow, and the text; leading blanks of the text belong to it."""

ORPHAN = "orphan_partial"
TOO_LONG = "too_long"


class _Open(msgspec.Struct):
    """Parts of one stream's line so far; None where they grew over the limit."""

    start: int
    text: bytearray | None = msgspec.field(default_factory=bytearray)


class Joiner:
    """Joins the parts of each stream's lines; streams interleave (fluent/fluent-bit#4387).

    Args:
        limit: longest joined line in bytes; also an attribute.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._open: dict[bytes, _Open] = {}

    def push(self, line: bytes, start: int) -> tuple[bytes | None, str | None]:
        """Takes one line that begins at `start`. Returns a whole line, or why one was lost, or neither.

        A line that is not a CRI line is passed on as it is.
        """
        match = LINE.fullmatch(line)
        if match is None:
            return line, None
        stream, more, text = match[1], match[2] == b"P", match[3]
        parts = self._open.get(stream)
        if parts is None:
            if not more:
                return (text, None) if len(text) <= self.limit else (None, TOO_LONG)
            parts = self._open[stream] = _Open(start)
        if parts.text is not None:
            if len(parts.text) + len(text) > self.limit:
                parts.text = None
            else:
                parts.text += text
        if more:
            return None, None
        del self._open[stream]
        return (None, TOO_LONG) if parts.text is None else (bytes(parts.text), None)

    def rewind(self, offset: int) -> int:
        """Where the oldest open line begins; `offset` where none is open."""
        return min((parts.start for parts in self._open.values()), default=offset)

    def orphans(self) -> int:
        """Gives up lines whose last part never came and returns how many."""
        count = len(self._open)
        self._open.clear()
        return count
