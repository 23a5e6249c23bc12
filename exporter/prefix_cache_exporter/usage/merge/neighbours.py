"""Which lines belong together, where an id does not say so alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prefix_cache_exporter.usage.maps.model import Stream
    from prefix_cache_exporter.usage.record import Fragment


def may_be_told_later(fragment: Fragment) -> bool:
    """Whether another line with the same id may still bring the usage that this one lacks.

    Background responses are logged while they run and when they have ended; chunks of streams in a log of whole
    responses have usage on the last one. The first such line must not make duplicates of those that follow.
    """
    return not fragment.seen and not fragment.replay and fragment.status not in {"failed", "cancelled"}


def begins_anew(held: Fragment, later: Fragment, stream: Stream) -> bool:
    """Whether a line without id belongs to another request than the lines before it.

    Where the format marks beginnings, only they count. Elsewhere counts never fall within a request, its prompt has one
    length, and nothing but usage follows usage.
    """
    if later.starts or stream.starts.parts:
        return later.starts
    if held.closed and not later.seen:
        return True
    pairs = ((held.output, later.output), (held.total, later.total))
    fell = any(before is not None and after is not None and after < before for before, after in pairs)
    return fell or (held.input is not None and later.input is not None and held.input != later.input)
