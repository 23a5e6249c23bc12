"""Server-sent events as text: what a proxy logged of a stream, event by event or whole in one field.

https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

_FRAMING: Final = re.compile(r"(?:event|id|retry)?:")
_DATA: Final = "data:"
_LINES: Final = re.compile(r"\r\n|\r|\n")
_DATA_LATER: Final = re.compile(r"[\r\n]data:")


def is_events(text: str) -> bool:
    """Whether a text begins as an event does. `id: 5` or `: a comment` alone might be anything else."""
    return text.startswith((_DATA, "event:")) or (
        text.startswith((":", "id:", "retry:")) and _DATA_LATER.search(text) is not None
    )


def is_framing(line: str) -> bool:
    """Whether a line of server-sent events holds no data: an event's name or id, a comment, the end of the stream."""
    if line.startswith(_DATA):
        return line[len(_DATA) :].strip() in {"", "[DONE]"}
    return _FRAMING.match(line) is not None


def data_of(line: str) -> str:
    """The data of a line of server-sent events, and any other line as it is."""
    return line[len(_DATA) :].strip() if line.startswith(_DATA) else line


def events(text: str) -> list[Any]:
    """The JSON data of the events in a text, in order; what is no JSON is passed over.

    Data that goes over several lines belongs together up to a line that is none. Where a log has dropped the blank
    lines between events, each line that is JSON by itself is an event.
    """
    found: list[Any] = []
    begun: list[str] = []
    for line in (*_LINES.split(text), ""):
        if line.startswith(_DATA) and not is_framing(line):
            begun.append(data_of(line))
            if len(begun) == 1 and _decoded(begun, found):
                begun.clear()
        elif begun:
            if not _decoded(["\n".join(begun)], found):
                _decoded(begun, found)
            begun.clear()
    return found


def _decoded(texts: list[str], into: list[Any]) -> bool:
    """Takes in those of some texts that are JSON; whether there was one."""
    before = len(into)
    for text in texts:
        try:
            into.append(msgspec.json.decode(text))
        except (ValueError, RecursionError):
            continue
    return len(into) > before
