"""Where reading stands in one log, as plain data that is committed together with the counters it led to.

A position holds hashes, never bytes or names of the log: what the state file may hold is bounded by privacy.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from typing import Protocol

    from .files import Name

    class Readable(Protocol):
        """Anything whose bytes can be looked at again."""

        def read(self, offset: int, size: int) -> bytes:
            """At most `size` bytes at `offset`; fewer only at the end of what is there."""
            ...


HEAD = 1024
"""Bytes at the front of a log that tell it from others."""
TAIL = 256
"""Bytes before the offset that must still be the same."""
TELLING = 64
"""A shorter head does not tell a copy from another log that begins alike."""

UNKNOWN, LINES, CRI, VALUES, INSIDE, REFUSED = "", "lines", "cri", "values", "inside", "refused"
"""How a log is cut into records: not known yet, by newline, CRI lines, JSON values one after the other, JSON values
inside an array, or not at all because it cannot be read."""


class Position(msgspec.Struct, frozen=True, array_like=True):
    """How far one log has been read.

    Attributes:
        device, inode: the file it was last read from. A rotation moves it to another file.
        offset: bytes consumed; of a compressed log, of its content.
        head_length, head: how many bytes at the front were hashed, and their hash.
        tail: hash of the bytes just before the offset.
        mode: how the log is cut into records.
        rewind: where the oldest CRI line begins that waits for its other parts; the offset where none waits.
        family: hash of the log's name without rotation suffixes; where a link was matched, of the link's.
        finished: whether the log was rotated away, or is an archive, and was read to its end.
        stamp: size and modification time of the file when it was read last; while both stay, a finished one is not
            opened again.
        place: hash of the real folder and the real name without rotation suffixes.
    """

    device: int
    inode: int
    offset: int = 0
    head_length: int = 0
    head: bytes = b""
    tail: bytes = b""
    mode: str = UNKNOWN
    rewind: int = 0
    family: bytes = b""
    finished: bool = False
    stamp: tuple[int, int] = (0, 0)
    place: bytes = b""

    @property
    def file(self) -> tuple[int, int]:
        """Device and inode."""
        return self.device, self.inode

    def akin(self, name: Name) -> bool:
        """Whether a file bears this log's name or one that rotation made of it.

        What lies behind a link is rotated under its own name, as kubelet does with /var/log/containers.
        """
        return name.family == self.family or name.place == self.place

    def begins(self, content: Readable) -> bool:
        """Whether a log begins as this one did."""
        return digest(content.read(0, self.head_length)) == self.head if self.head_length else True

    def fits(self, content: Readable) -> bool:
        """Whether a log begins as this one did and holds the same bytes before the offset.

        An offset beyond the end, or a new file under a reused inode, fits neither (fluent/fluent-bit#8025,
        DataDog/datadog-agent#54149).
        """
        if not self.begins(content):
            return False
        length = min(TAIL, self.offset)
        tail = content.read(self.offset - length, length)
        return len(tail) == length and (digest(tail) == self.tail or not length)

    def tells(self) -> bool:
        """Whether enough has been read to recognise a copy of the log."""
        return self.head_length >= TELLING


def moved(
    position: Position, content: Readable, offset: int, mode: str, rewind: int, *, stamp: tuple[int, int] = (0, 0)
) -> Position:
    """The position after consuming `content` up to `offset`, which had a `stamp` before it was read."""
    length = min(TAIL, offset)
    head_length, head = position.head_length, position.head
    if head_length < HEAD and head_length < offset:
        head_length = min(HEAD, offset)
        head = digest(content.read(0, head_length))
    return msgspec.structs.replace(
        position,
        offset=offset,
        head_length=head_length,
        head=head,
        tail=digest(content.read(offset - length, length)),
        mode=mode,
        rewind=rewind,
        stamp=stamp,
    )


def digest(data: bytes) -> bytes:
    """A short hash of a log's bytes."""
    return blake2b(data, digest_size=16).digest()


def dump(position: Position) -> bytes:
    """A position as the state file keeps it."""
    return _ENCODER.encode(position)


def load(payload: bytes) -> Position | None:
    """A position from the state file; None where another version wrote it."""
    try:
        return _DECODER.decode(payload)
    except msgspec.DecodeError:
        return None


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Position)
