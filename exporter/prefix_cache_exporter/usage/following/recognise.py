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

    from .known import Known
    from .opened import Opened


@dataclass(frozen=True, slots=True)
class Same:
    """The file goes on where a log stands."""

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
    for key, position in known.newest_first():
        if position.mode == REFUSED:
            if beside and position.head_length and position.akin(name) and judge.fits(position, content):
                return Copy(key)
            continue
        if position.file == match.file and key not in opened and judge.fits(position, content):
            return Same(key)
        if not position.akin(name):
            continue
        one = opened.get(key)
        if one is not None:
            kind = judge.compare(one.log, content)
        elif not position.tells():
            continue
        elif judge.fits(position, content):
            return Same(key)
        else:
            kind = judge.shorter(position, content)
        if kind != judge.OTHER:
            return Copy(key, clear=kind == judge.COPY)
    return None
