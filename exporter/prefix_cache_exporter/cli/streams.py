"""The process's three streams, so that none of them can end a command with a traceback."""

from __future__ import annotations

import codecs
import io
import os
import sys
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from typing_extensions import Buffer

_IN, _OUT, _ERR = range(3)
_ESCAPED: Final = "prefix-cache-exporter.escaped"


class OutputError(Exception):
    """Standard output takes no more. No OSError: commands would take it for one of the file that they read."""

    def __init__(self, error: OSError) -> None:
        got = (error.strerror or "an error").lower()
        super().__init__(f"standard output: got {got}, expected one that takes what is written")


class _Output(io.FileIO):
    def write(self, data: Buffer, /) -> int:
        """Writes, and tells a full disk from the reader that went away."""
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(error) from error


class _Errors(io.FileIO):
    def write(self, data: Buffer, /) -> int:
        """Writes; what cannot be said there can be said nowhere."""
        try:
            return super().write(data)
        except OSError:
            return len(memoryview(data))


def take_streams() -> None:
    """Puts streams of our own in the place of the interpreter's.

    One that was closed at the start is opened: onto nothing for output, onto what refuses to be read for input. Else
    the next file to be opened would have its number. What a stream's encoding lacks is written as JSON escapes it.
    """
    for number in (_IN, _OUT, _ERR):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_WRONLY)  # the system gives the lowest free number, this one
    if sys.stdin is None:
        sys.stdin = os.fdopen(_IN, encoding="utf-8", closefd=False)
    codecs.register_error(_ESCAPED, escaped)
    sys.stdout = _stream(sys.stdout, _Output(_OUT, "w", closefd=False))
    sys.stderr = _stream(sys.stderr, _Errors(_ERR, "w", closefd=False))


def leave_output() -> None:
    """Lets what is still to be written go nowhere: the interpreter flushes at its end, and would complain."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)


def escaped(error: UnicodeError) -> tuple[str, int]:
    r"""What an encoding lacks, as `\u` and four digits: JSON stays JSON, and a person sees which character it is.

    Raises:
        UnicodeError: where something else than encoding failed.
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2)), error.end


def _stream(before: TextIO | None, raw: io.FileIO) -> TextIO:
    """A text stream like the interpreter's own."""
    old = before if isinstance(before, io.TextIOWrapper) else None
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding="utf-8" if old is None else old.encoding,
        errors=_ESCAPED,
        line_buffering=old is None or old.line_buffering,
        write_through=old is not None and old.write_through,
    )
