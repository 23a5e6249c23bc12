"""Objects that were logged packed: JSON in base64, gzip in it or not, as queues and event streams carry it."""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from typing import Any, Final

import msgspec

from .reprs import from_repr

_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{8,}={0,2}")
_GZIP: Final = b"\x1f\x8b"
_MARKS: Final = ((_GZIP, "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"{", "JSON"), (b"[", "JSON"))
_LARGEST: Final = 4 << 20
"""Bytes of an object once it is unpacked."""


def unpacked(value: Any) -> Any:
    """The object that a text holds, packed or plain; an empty one where it holds none, and what is no text as it is.

    Zstandard and what unpacks to more than 4 MiB are not read.
    """
    if not isinstance(value, str):
        return value
    data = _bytes_of(value)
    if data is None:
        return from_repr(value[2:-1] if value[:2] in ("b'", 'b"') else value)  # the repr of Python's bytes
    try:
        if data.startswith(_GZIP):
            packed = zlib.decompressobj(wbits=31)
            data = packed.decompress(data, _LARGEST)
            if packed.unconsumed_tail:
                return {}
        found = msgspec.json.decode(data)
    except (ValueError, RecursionError, zlib.error):
        return {}
    return found if isinstance(found, dict | list) else {}


def packed_as(text: str) -> str | None:
    """What a text holds in base64, as far as its front tells; None where it holds none of what is known."""
    data = _bytes_of(text)
    return None if data is None else next((name for mark, name in _MARKS if data.startswith(mark)), None)


def _bytes_of(text: str) -> bytes | None:
    if len(text) > 2 * _LARGEST or _BASE64.fullmatch(text) is None:
        return None
    plain = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4))
    except (binascii.Error, ValueError):
        return None
