from __future__ import annotations

import base64
import gzip

import pytest

from prefix_cache_exporter.usage.unpack import unpacked

JSON = b'{"usage": {"prompt_tokens": 5}}'
OBJECT = {"usage": {"prompt_tokens": 5}}


def text(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (text(JSON), OBJECT),
        (text(JSON).rstrip("="), OBJECT),
        (base64.urlsafe_b64encode(JSON).decode(), OBJECT),
        (text(gzip.compress(JSON)), OBJECT),
        (text(b"[1]"), {}),  # too short to be told from a word
        (text(b"[1, 2, 3]"), [1, 2, 3]),
        (JSON.decode(), OBJECT),
        (f"b'{JSON.decode()}'", OBJECT),
        ("data: " + JSON.decode(), OBJECT),
        (text(gzip.compress(JSON)[:-12]), {}),
        (text(b"\x28\xb5\x2f\xfd" + bytes(16)), {}),
        (text(b"just some text in base64"), {}),
        (text(b'"a word in quotes"'), {}),
        (text(gzip.compress(b" " * (5 << 20) + JSON)), {}),  # grows beyond what is kept in memory
        ("", {}),
        (OBJECT, OBJECT),
        (None, None),
    ],
)
def test_what_a_field_holds_once_it_is_unpacked(value, found):
    assert unpacked(value) == found
