"""Usage maps of a user's own, and a line for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.usage.maps.book import MapBook

if TYPE_CHECKING:
    from pathlib import Path

IN_AN_ENVELOPE = {
    "ts": 1790000000.5,
    "request_id": "r1",
    "response": {
        "code": 200,
        "body": {
            "id": "chatcmpl-1",
            "model": "gpt-4o",
            "usage": {
                "prompt_tokens": 10,
                "completion_tokens": 1,
                "total_tokens": 11,
                "prompt_tokens_details": {"cached_tokens": 4},
            },
        },
    },
}
"""A chat completion within a gateway's own line."""


def book(folder: Path, *texts: str) -> MapBook:
    """The shipped maps and those whose YAML is given, each written to a file `<its position>.yaml`."""
    for number, text in enumerate(texts):
        (folder / f"{number}.yaml").write_text(text)
    return MapBook([folder])
