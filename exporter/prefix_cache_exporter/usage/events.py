"""Server-sent events as text: what a proxy logged of a stream, event by event or whole in one field.

https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

_FRAMING: Final = re.compile(r"(?:event|id|retry)?:")
_DATA: Final = "data:"
_LINES: Final = re.compile(r"[\r\n]+")


def is_events(text: str) -> bool:
    """Whether a text begins as an event does. `id: 5` alone might be anything else."""
    return text.startswith((_DATA, "event:"))


def is_framing(line: str) -> bool:
    """Whether a line of server-sent events holds no data: an event's name or id, a comment, the end of the stream."""
    if line.startswith(_DATA):
        return line[len(_DATA) :].strip() in {"", "[DONE]"}
    return _FRAMING.match(line) is not None


def data_of(line: str) -> str:
    """The data of a line of server-sent events, and any other line as it is."""
    return line[len(_DATA) :].strip() if line.startswith(_DATA) else line


def events(text: str) -> list[Any]:
    """The JSON data of the events in a text, in order; what is no JSON is passed over."""
    found = []
    for line in _LINES.split(text):
        if line.startswith(_DATA) and not is_framing(line):
            try:
                found.append(msgspec.json.decode(data_of(line)))
            except (ValueError, RecursionError):
                continue
    return found
