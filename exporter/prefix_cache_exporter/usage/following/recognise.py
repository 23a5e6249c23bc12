"""Which of the known logs a file holds."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prefix_cache_exporter.usage import files, judge
from prefix_cache_exporter.usage.positions import REFUSED

if TYPE_CHECKING:
    from prefix_cache_exporter.usage.contents import Content
    from prefix_cache_exporter.usage.files import Match
    from prefix_cache_exporter.usage.positions import Position

    from .known import Known
    from .opened import Opened


@dataclass(frozen=True, slots=True)
class Same:
    """The file goes on where a log stands, which may still be open in another file."""

    key: int


@dataclass(frozen=True, slots=True)
class Copy:
    """The file gives nothing that its original does not.

    Attributes:
        key: the original.
        clear: whether that is certain; otherwise it is to be judged again.
    """

    key: int
    clear: bool = True


def recognise(match: Match, content: Content, known: Known, opened: Opened, *, beside: bool) -> Same | Copy | None:
    """Holds a file against all known logs; None where it holds none of them.

    Args:
        match: the file.
        content: what it holds.
        known: all logs.
        opened: those that are being read.
        beside: no pattern matches the file, but it bears a rotated name of a log.
    """
    name = files.name(match.path, os.path.realpath(match.path))
    front = judge.Front(content)
    for key, position in known.related(match.file, name):
        one = opened.get(key)
        if position.mode == REFUSED:
            if beside and position.head_length and position.akin(name) and _fits(position, front):
                return Copy(key)
        elif position.file == match.file and one is None and _fits(position, front):
            return Same(key)
        elif position.akin(name) and (one is not None or position.tells()):
            if one is None and _fits(position, front):
                return Same(key)
            kind = judge.shorter(position, front) if one is None else judge.compare(one.log, front)
            if kind == judge.MORE:
                return Same(key)
            if kind != judge.OTHER:
                return Copy(key, clear=kind == judge.COPY)
    return None


def _fits(position: Position, front: judge.Front) -> bool:
    return front.begins(position) and judge.fits(position, front.content)
