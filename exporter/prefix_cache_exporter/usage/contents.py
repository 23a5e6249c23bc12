"""The bytes of one log, whatever it is stored in: a plain file, a gzip file, or a pipe."""

from __future__ import annotations

import contextlib
import os
import zlib
from typing import TYPE_CHECKING, Final, Protocol

from .positions import HEAD, TAIL

if TYPE_CHECKING:
    from collections.abc import Callable

CHUNK = 1 << 18
"""Bytes read at a time: what is made of them stays in a processor's cache."""
_GZIP: Final = b"\x1f\x8b"
_OTHER_ARCHIVES: Final = {
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bzip2",
    b"\xfd7zXZ\0": "xz",
    b"PK\x03\x04": "zip",
    b"\x04\x22\x4d\x18": "lz4",
    b"\x1f\x9d": "compress",
    b"7z\xbc\xaf\x27\x1c": "7z",
}
"""Archives that nobody here reads, by their first bytes; none of their bytes may pass for a log line."""
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")
"""Byte order marks of text that PowerShell and others write; nobody here reads it, and no half of it is a log line."""
_MARKS: Final = (_GZIP, *_OTHER_ARCHIVES, *_UTF16)
_WORDS: Final = {
    "corrupt": ("a damaged archive", "gzip that can be unpacked"),
    "truncated": ("an archive cut short", "one that is whole"),
    "unsupported_compression": ("another archive", "a log, plain or gzip"),
    "unsupported_encoding": ("text in UTF-16", "text in UTF-8"),
}
"""What stood there and what was expected, by reason."""


class UnreadableError(ValueError):
    """A log that cannot be read to its end.

    Args:
        reason: as below.
        got: what stood there, where more is known of it.

    Attributes:
        reason: `corrupt`, `truncated`, `unsupported_compression` or `unsupported_encoding`.
    """

    def __init__(self, reason: str, got: str | None = None) -> None:
        self.reason = reason
        words, expected = _WORDS[reason]
        super().__init__(f"got {got or words}, expected {expected}")


class Content(Protocol):
    """The bytes of one log."""

    def read(self, offset: int, size: int) -> bytes:
        """At most `size` bytes at `offset`; fewer only at the end of what is there now.

        Raises:
            UnreadableError: where the archive is damaged.
        """
        ...

    def first_data(self, offset: int) -> int | None:
        """Where the first byte that is not NUL stands, from `offset` on; None where there is none yet."""
        ...

    def stamp(self) -> tuple[int, int]:
        """Size and modification time; while both stay, there is nothing new to read."""
        ...

    def extent(self, most: int) -> int:
        """How many bytes there are by now, `most` at the most."""
        ...

    def unread(self, offset: int) -> int:
        """Bytes that are known to be there and not read yet."""
        ...

    @property
    def complete(self) -> bool:
        """Whether the log has ended for good."""
        ...

    @property
    def rewritable(self) -> bool:
        """Whether bytes that were read may be replaced by others."""
        ...

    @property
    def linked(self) -> bool:
        """Whether the file may still be found under some name."""
        ...

    def reopened(self) -> Content:
        """The same file, taken for what it holds by now; the old object is not used again.

        Raises:
            UnreadableError: for a compression that is not read here; the file is closed then.
        """
        ...

    def close(self) -> None:
        """Closes the file."""
        ...


class Plain:
    """A regular file, read at any offset."""

    rewritable = True
    complete = False

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def read(self, offset: int, size: int) -> bytes:
        """Reads at an offset."""
        return os.pread(self._fd, size, offset)

    def read_into(self, buffer: bytearray, offset: int) -> int:
        """Reads at an offset into a buffer, as much as it holds; how many bytes there were."""
        return os.preadv(self._fd, [buffer], offset)

    def first_data(self, offset: int) -> int | None:
        """Steps over holes without reading them where the file system knows them."""
        with contextlib.suppress(OSError):  # past the end, or a file system without holes
            offset = max(offset, os.lseek(self._fd, offset, os.SEEK_DATA))
        while data := self.read(offset, CHUNK):
            rest = data.lstrip(b"\0")
            if rest:
                return offset + len(data) - len(rest)
            offset += len(data)
        return None

    def stamp(self) -> tuple[int, int]:
        """Size and modification time."""
        now = os.fstat(self._fd)
        return now.st_size, now.st_mtime_ns

    @property
    def linked(self) -> bool:
        """Whether it has a name; it loses the last one when it is deleted, or another file is moved over it."""
        return os.fstat(self._fd).st_nlink > 0

    def extent(self, most: int) -> int:
        """The file's size, `most` at the most."""
        return min(most, os.fstat(self._fd).st_size)

    def unread(self, offset: int) -> int:
        """Bytes beyond the offset."""
        return max(0, os.fstat(self._fd).st_size - offset)

    def reopened(self) -> Content:
        """It may have been empty, and be an archive by now."""
        return open_content(self._fd)

    def close(self) -> None:
        """Closes the file."""
        os.close(self._fd)


class _Forward:
    """Bytes that come in order only; a window around the offset is kept, bounded by what is asked for."""

    rewritable = False
    linked = True

    def __init__(self) -> None:
        self._base = 0
        self._window = bytearray()
        self._head = b""
        self.complete = False

    def read(self, offset: int, size: int) -> bytes:
        """Reads at an offset within the window or beyond it; a step back begins anew."""
        if offset < self._base:
            if offset + size <= len(self._head):
                return self._head[offset : offset + size]
            self._restart()
        while self._base + len(self._window) < offset + size:
            more = self._more()
            if not more:
                break
            self._window += more
            if len(self._head) < HEAD:
                self._head += more[: HEAD - len(self._head)]
            self._forget(offset - TAIL)
        start = offset - self._base
        return bytes(self._window[start : start + size])

    def extent(self, most: int) -> int:
        """Reads on as far as `most` to see."""
        if most <= self._base + len(self._window):
            return most
        place = self._base + len(self._window)
        while place < most and (more := self.read(place, CHUNK)):
            place += len(more)
        return min(most, place)

    def first_data(self, offset: int) -> int | None:
        """Steps over NULs at once: what comes in order is not written over later."""
        data = self.read(offset, CHUNK)
        return offset + len(data) - len(data.lstrip(b"\0")) if data else None

    def reopened(self) -> Content:
        """What came in order stays what it was."""
        return self

    def _forget(self, before: int) -> None:
        gone = min(before - self._base, len(self._window))
        if gone >= CHUNK or (gone > 0 and gone == len(self._window)):
            del self._window[:gone]
            self._base += gone

    def _restart(self) -> None:
        self._base = 0
        self._window.clear()
        self._head = b""
        self.complete = False

    def _more(self) -> bytes:
        raise NotImplementedError

    def stamp(self) -> tuple[int, int]:
        """Size and modification time."""
        raise NotImplementedError

    def unread(self, offset: int) -> int:
        """Bytes known to be there and not read yet."""
        raise NotImplementedError

    def close(self) -> None:
        """Closes the file."""
        raise NotImplementedError


class _Members:
    """What gzip members hold, one behind another.

    Args:
        rest: their first bytes, where these have been read already.
    """

    def __init__(self, rest: bytes = b"") -> None:
        self._rest = rest
        self._member = zlib.decompressobj(wbits=31)

    @property
    def whole(self) -> bool:
        """Whether the last of them has come to its end."""
        return self._member.eof

    def more(self, read: Callable[[], bytes]) -> bytes:
        """What comes next, at most a chunk of it; nothing where `read` gives nothing.

        Raises:
            UnreadableError: where it is damaged.
        """
        while raw := self._rest or read():
            self._rest = b""
            if self._member.eof:
                raw = raw.lstrip(b"\0")  # padding of tapes and block devices
                if not raw:
                    continue
                self._member = zlib.decompressobj(wbits=31)
            try:
                data = self._member.decompress(raw, CHUNK)
            except zlib.error as error:
                self._rest = raw  # it fails again however often it is read
                raise UnreadableError("corrupt") from error
            self._rest = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
            if data:
                return data
        return b""


class Gzip(_Forward):
    """A gzip file of one or many members, still being written or finished."""

    def __init__(self, fd: int) -> None:
        super().__init__()
        self._fd = fd
        self._restart()

    def stamp(self) -> tuple[int, int]:
        """Size and modification time of the compressed file."""
        now = os.fstat(self._fd)
        return now.st_size, now.st_mtime_ns

    def unread(self, offset: int) -> int:
        """Compressed bytes not read yet; how much they hold is not known."""
        return max(0, os.fstat(self._fd).st_size - self._place) + max(0, self._base + len(self._window) - offset)

    def close(self) -> None:
        """Closes the file."""
        os.close(self._fd)

    @property
    def truncated(self) -> bool:
        """Whether what was read so far ends in the middle of a member."""
        return not self._members.whole

    def _restart(self) -> None:
        super()._restart()
        self._place = 0
        self._members = _Members()

    def _more(self) -> bytes:
        self.complete = False
        data = self._members.more(self._next)
        self.complete = not data and self._members.whole
        return data

    def _next(self) -> bytes:
        raw = os.pread(self._fd, CHUNK, self._place)
        self._place += len(raw)
        return raw


class Pipe(_Forward):
    """Standard input, plain or gzip: read once, in order, without waiting for it."""

    def __init__(self, fd: int) -> None:
        super().__init__()
        self._fd = fd
        self._turn = 0
        self._ended = False
        self._first: bytes | None = b""
        self._members: _Members | None = None
        os.set_blocking(fd, False)

    def fileno(self) -> int:
        """The descriptor, for whoever waits until there is more."""
        return self._fd

    @property
    def truncated(self) -> bool:
        """Whether it is packed, and what came so far ends in the middle of a member."""
        return self._members is not None and not self._members.whole

    def stamp(self) -> tuple[int, int]:
        """Never the same twice, until the end."""
        self._turn += not self.complete
        return self._turn, 0

    def unread(self, offset: int) -> int:
        """Bytes read from the pipe that made no whole record yet."""
        return max(0, self._base + len(self._window) - offset)

    def close(self) -> None:
        """The pipe belongs to whoever opened it."""

    def _more(self) -> bytes:
        if self.complete:
            return b""
        data = self._members.more(self._next) if self._members else self._plain()
        self.complete = self._ended and not data
        return data

    def _plain(self) -> bytes:
        """What came, once its first bytes tell that it is no archive."""
        data = self._next()
        if self._first is None:
            return data
        self._first += data
        short = (len(self._first) < len(mark) and mark.startswith(self._first) for mark in _MARKS)
        if not self._ended and any(short):
            return b""
        packed, first = _is_gzip(self._first), self._first
        self._first = None
        if not packed:
            return first
        self._members = _Members(first)
        return self._members.more(self._next)

    def _next(self) -> bytes:
        if self._ended:
            return b""
        try:
            data = os.read(self._fd, CHUNK)
        except BlockingIOError:
            return b""
        self._ended = not data
        return data


def _is_gzip(first: bytes) -> bool:
    """Whether a log with these first bytes is packed.

    Raises:
        UnreadableError: for what nobody here reads.
    """
    if first.startswith(_UTF16):
        raise UnreadableError("unsupported_encoding")
    for mark, name in _OTHER_ARCHIVES.items():
        if first.startswith(mark):
            raise UnreadableError("unsupported_compression", f"a {name} archive")
    return first.startswith(_GZIP)


def open_content(fd: int) -> Content:
    """Takes an open regular file over, told by its first bytes and never by its name.

    Raises:
        UnreadableError: for a compression that is not read here; the file is closed then.
    """
    try:
        packed = _is_gzip(os.pread(fd, max(map(len, _MARKS)), 0))
    except UnreadableError:
        os.close(fd)
        raise
    return Gzip(fd) if packed else Plain(fd)
