"""The bytes of one log, whatever it is stored in: a plain file, a gzip file, or a pipe."""

from __future__ import annotations

import contextlib
import os
import zlib
from typing import Protocol

from .positions import HEAD, TAIL

CHUNK = 1 << 18
"""Bytes read at a time: what is made of them stays in a processor's cache."""
_GZIP = b"\x1f\x8b"
_OTHER_ARCHIVES = (b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ\0", b"PK\x03\x04", b"\x04\x22\x4d\x18")
"""zstd, bzip2, xz, zip, lz4: nobody here reads them, and none of their bytes may pass for a log line."""


class UnreadableError(ValueError):
    """A log that cannot be read to its end.

    Attributes:
        reason: `corrupt`, `unsupported_compression` or `unsupported_encoding`.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"unreadable log: {reason}")


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

    def _restart(self) -> None:
        super()._restart()
        self._place = 0
        self._rest = b""
        self._member = zlib.decompressobj(wbits=31)

    def _more(self) -> bytes:
        while True:
            raw = self._rest or self._next()
            if self._member.eof:
                raw = raw.lstrip(b"\0")  # padding of tapes and block devices
                if raw:
                    self._member = zlib.decompressobj(wbits=31)
                    self.complete = False
            if not raw:
                self.complete = self._member.eof
                return b""
            try:
                data = self._member.decompress(raw, CHUNK)
            except zlib.error as error:
                self._rest = raw  # it fails again however often it is read
                raise UnreadableError("corrupt") from error
            self._rest = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
            if data:
                return data

    def _next(self) -> bytes:
        raw = os.pread(self._fd, CHUNK, self._place)
        self._place += len(raw)
        return raw


class Pipe(_Forward):
    """Standard input: read once, in order, without waiting for it."""

    def __init__(self, fd: int) -> None:
        super().__init__()
        self._fd = fd
        self._turn = 0
        os.set_blocking(fd, False)

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
        try:
            data = os.read(self._fd, CHUNK)
        except BlockingIOError:
            return b""
        self.complete = not data
        return data


_UTF16 = (b"\xff\xfe", b"\xfe\xff")
"""Byte order marks of text that PowerShell and others write; nobody here reads it, and no half of it is a log line."""


def open_content(fd: int) -> Content:
    """Takes an open regular file over, told by its first bytes and never by its name.

    Raises:
        UnreadableError: for a compression that is not read here; the file is closed then.
    """
    first = os.pread(fd, 6, 0)
    if first.startswith(_UTF16):
        os.close(fd)
        raise UnreadableError("unsupported_encoding")
    if first.startswith(_OTHER_ARCHIVES):
        os.close(fd)
        raise UnreadableError("unsupported_compression")
    return Gzip(fd) if first.startswith(_GZIP) else Plain(fd)
