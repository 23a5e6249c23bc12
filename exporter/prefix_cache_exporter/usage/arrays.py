"""JSON values that are not one per line: arrays in finished files, and pretty-printed objects one after the other."""

from __future__ import annotations

import re

import msgspec

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"|["{}\[\],]', re.DOTALL)
_BLANK = b" \t\r\n\0\xef\xbb\xbf"
_STRUCTURE = re.compile(rb'\\.|["{}\[\]]', re.DOTALL)
_OPENING = re.compile(rb"[\s\0\xef\xbb\xbf]*(?:\[\s*(?:[{\]]|$)|\{[ \t]*\r?\n)")


def is_values(front: bytes) -> bool:
    """Whether a log's front is an array of objects or a pretty-printed object; `[INFO] …` is neither."""
    return _OPENING.match(front) is not None


class Found(msgspec.Struct, frozen=True):
    """Whole values at the front of some bytes.

    Attributes:
        values: their bytes, in order.
        consumed: where the last one ends. The closing bracket is not part of it, so that an array that is written anew
            with more at its end goes on where it was.
        inside: whether that place is inside an array.
    """

    values: list[bytes]
    consumed: int
    inside: bool


def find_values(data: bytes, *, inside: bool) -> Found:
    """Cuts whole values from bytes that begin between two values."""
    values: list[bytes] = []
    consumed = last = depth = start = 0
    settled = inside
    for token in _TOKEN.finditer(data):
        mark = token[0]
        if mark == b'"':
            break  # a string whose end is not there yet
        if mark in b"{[":
            if depth == 0 and mark == b"[" and not inside:
                inside, settled, consumed, last = True, True, token.end(), token.end()
                continue
            start = token.start() if depth == 0 else start
            depth += 1
        elif mark in b"}]" and depth:
            depth -= 1
            if depth == 0:
                values.append(data[start : token.end()])
                consumed, settled, last = token.end(), inside, token.end()
        elif depth == 0 and mark in b",]}":
            if scalar := data[last : token.start()].strip(_BLANK):
                values.append(scalar)
                consumed, settled = token.start(), inside
            if mark == b",":
                consumed, settled = token.end(), inside
            inside = inside and mark == b","
            last = token.end()
    return Found(values, consumed, settled)


def leftover(data: bytes) -> bytes:
    """What remains of a finished log behind its last whole value, without the closing bracket."""
    return data.strip(_BLANK + b",]")


class Skipper:
    """Finds the end of a value too long to be held, in any number of pieces."""

    def __init__(self) -> None:
        self._depth = 0
        self._quoted = False
        self._carry = b""

    def feed(self, piece: bytes) -> int | None:
        """Returns how many bytes of the piece belong to the value once its end is in it."""
        data = self._carry + piece
        for token in _STRUCTURE.finditer(data):
            mark = token[0]
            if mark == b'"':
                self._quoted = not self._quoted
            elif self._quoted or len(mark) == 2:  # noqa: PLR2004  # an escape: a backslash and what it hides
                continue
            elif mark in b"{[":
                self._depth += 1
            else:
                self._depth -= 1
                if self._depth <= 0:
                    return token.end() - len(self._carry)
        # A backslash at the very end hides a byte that is still to come.
        self._carry = b"\\" if (len(data) - len(data.rstrip(b"\\"))) % 2 else b""
        return None
