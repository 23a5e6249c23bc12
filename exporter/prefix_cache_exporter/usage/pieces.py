"""What one read of a log gives: whole lines, uncut where nobody needs them one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

_BLANK = 0x20


class Block(Sequence[bytes]):
    """Whole lines as one piece of bytes, cut into lines only where somebody asks for one.

    Attributes:
        data: the bytes; each line ends in a newline.
    """

    __slots__ = ("_lines", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._lines: list[bytes] | None = None

    @property
    def lines(self) -> list[bytes]:
        """The lines without their ends; none is blank."""
        if self._lines is None:
            self._lines = not_blank(self.data.split(b"\n"))
        return self._lines

    @overload
    def __getitem__(self, place: int) -> bytes: ...
    @overload
    def __getitem__(self, place: slice) -> list[bytes]: ...
    def __getitem__(self, place: int | slice) -> bytes | list[bytes]:
        return self.lines[place]

    def __len__(self) -> int:
        return len(self.lines)

    def __bool__(self) -> bool:
        return bool(self.data)

    def __eq__(self, other: object) -> bool:
        return self.lines == list(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # a list in all but name


class Piece(msgspec.Struct, frozen=True):
    """What one read gave.

    Attributes:
        lines: whole lines without their ends, in order; none is blank.
        lost: lines that will never come, by reason.
        size: bytes consumed.
    """

    lines: Sequence[bytes]
    lost: Mapping[str, int] = msgspec.field(default_factory=dict)
    size: int = 0


def not_blank(lines: list[bytes]) -> list[bytes]:
    """Lines that hold something."""
    return [line for line in lines if line and (line[0] > _BLANK or not line.isspace())]
