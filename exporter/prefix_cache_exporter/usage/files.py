"""Finding logs on disk: the files that patterns match, and the names that rotation gives them."""

from __future__ import annotations

import glob
import os
import re
import stat
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

STANDARD_INPUT = "-"
"""The path of a source that reads standard input."""

File = tuple[int, int]
"""Device and inode."""

_ROTATION = re.compile(
    r"""(?:[._-]{1,2}(?:
        \d{4}-?\d\d-?\d\d(?:[-T_.]?\d\d[-:.]?\d\d(?:[-:.]?\d\d)?)?(?:[.,]\d+)?Z?   # 0.log.20260302-120000
      | \d{10,13}                                           # app.log-1772452800
      | \d{1,5}                                             # app.log.1; behind dates, whose year it would take
      | old | bak | backup | prev(?:ious)? | orig
    )(?=[._-]|$))+""",
    re.VERBOSE,
)
_PACKED = re.compile(r"\.(?:gz|gzip|tmp|zst|zstd|bz2|xz|lz4|zip|Z)$")
_REMEMBERED = 16_384
"""Names whose hashes are remembered."""
_LITERAL = re.compile(r"[^*?\[]*")


@dataclass(frozen=True, slots=True)
class Match:
    """One file that a pattern matches.

    Attributes:
        path: where it was found.
        file: its device and inode.
        stamp: its size and modification time.
    """

    path: str
    file: File
    stamp: tuple[int, int]


class Name(NamedTuple):
    """What stays of a log's name when it is rotated and packed, as hashes.

    Attributes:
        family: of the name that a pattern matched, which may be a link's.
        place: of the real folder and the real name.
    """

    family: bytes
    place: bytes


@dataclass(slots=True)
class Listing:
    """What one look at the disk found.

    Attributes:
        matches: files by identity; a file under several names stands here once.
        folders: the patterns' own folders, in which rotated files may lie.
        readable: whether everything could be looked at and something matched.
    """

    matches: dict[File, Match] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    readable: bool = True


def look(patterns: Iterable[str]) -> Listing:
    """Looks for the files that patterns match; symbolic links are followed."""
    listing = Listing()
    for pattern in patterns:
        if pattern == STANDARD_INPUT:
            continue
        paths = glob.glob(pattern, recursive=True) if glob.has_magic(pattern) else [pattern]  # noqa: PTH207  # Path.glob: no absolute ones
        listing.folders.add(_folder(pattern))
        for path in sorted(paths):
            try:
                found = os.stat(path)  # noqa: PTH116  # in a loop over every file, every second
            except FileNotFoundError:
                continue
            except OSError:
                listing.readable = False
                continue
            if stat.S_ISREG(found.st_mode):
                file = (found.st_dev, found.st_ino)
                listing.matches.setdefault(file, Match(path, file, (found.st_size, found.st_mtime_ns)))
    listing.readable = listing.readable and bool(listing.matches)
    return listing


def siblings(folders: Iterable[str], places: Collection[bytes] | None = None) -> tuple[list[Match], bool]:
    """Regular files in some folders, oldest first, and whether all folders could be read.

    Args:
        folders: real paths.
        places: only files of these families in their folders; None for all files.
    """
    found: list[Match] = []
    whole = True
    for folder in folders:
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if (places is None or place(entry.path) in places) and entry.is_file(follow_symlinks=False):
                        info = entry.stat(follow_symlinks=False)
                        found.append(Match(entry.path, (info.st_dev, info.st_ino), (info.st_size, info.st_mtime_ns)))
        except FileNotFoundError:
            continue
        except OSError:
            whole = False
    return sorted(found, key=lambda match: match.stamp[1]), whole


@lru_cache(_REMEMBERED)
def family(path: str) -> bytes:
    """A hash of a log's name that stays the same when it is rotated and packed.

    `app.log`, `app.log.1`, `app.log-20260302.gz` and `app-2026-03-02.log` are one family.
    """
    return _hash(_plain_name(path))


@lru_cache(_REMEMBERED)
def place(path: str) -> bytes:
    """A hash of a real path's folder and family."""
    return _hash(f"{os.path.dirname(path)}\0{_plain_name(path)}")  # noqa: PTH120  # text in, text out


def name(path: str, real: str | None = None) -> Name:
    """What stays of a log's name.

    Args:
        path: where it was found.
        real: the same behind symbolic links, where there can be any.
    """
    return Name(family(path), place(path if real is None else real))


def _plain_name(path: str) -> str:
    name = Path(path).name
    while packed := _PACKED.search(name):
        name = name[: packed.start()]
    return _ROTATION.sub("", name) or name


def _hash(text: str) -> bytes:
    return blake2b(text.encode(errors="surrogateescape"), digest_size=8).digest()


def folder_of(path: str) -> str:
    """The folder that a file really lies in, behind symbolic links."""
    return os.path.dirname(os.path.realpath(path))  # noqa: PTH120  # text in, text out


def _folder(pattern: str) -> str:
    literal = _LITERAL.match(pattern)
    front = literal[0] if literal else ""
    return os.path.realpath(os.path.dirname(front) or ".")  # noqa: PTH120  # `a/` must stay `a`
