"""Standard input: what is packed there is unpacked or refused, however it comes."""

from __future__ import annotations

import bz2
import gzip
import os

import pytest

from prefix_cache_exporter.usage.contents import Pipe, UnreadableError

TEXT = b'{"a": 1}\n' * 50


def read(*parts):
    """Everything of a pipe into which a writer puts so many bytes at a time; and the pipe."""
    reader, writer = os.pipe()
    pipe = Pipe(reader)
    found = b""
    for part in parts:
        os.write(writer, part)
        found += pipe.read(len(found), 1 << 20)
        assert not pipe.complete
    os.close(writer)
    for _ in range(2):
        found += pipe.read(len(found), 1 << 20)
    os.close(reader)
    assert pipe.complete
    return found, pipe.truncated


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (TEXT, TEXT),
        (gzip.compress(TEXT), TEXT),
        (gzip.compress(TEXT) + b"\0" * 20 + gzip.compress(b"last\n") + b"\0\0", TEXT + b"last\n"),
        (gzip.compress(b""), b""),
        (b"", b""),
        (b"\x1f", b"\x1f"),
        (b"BZ", b"BZ"),
        (b"BZip is a word\n", b"BZip is a word\n"),
        (b"PK\n", b"PK\n"),
    ],
)
@pytest.mark.parametrize("size", [1, 7, 1 << 16])
def test_a_pipe_is_told_by_its_first_bytes(content, expected, size):
    parts = [content[at : at + size] for at in range(0, len(content), size)]
    assert read(*parts) == (expected, False)


def test_an_archive_that_ends_too_early_is_said_to():
    found, truncated = read(gzip.compress(os.urandom(999), mtime=0)[:-9])
    assert len(found) > 900
    assert truncated


@pytest.mark.parametrize(
    ("content", "reason", "said"),
    [
        (bz2.compress(TEXT), "unsupported_compression", "got a bzip2 archive, expected a log, plain or gzip"),
        (b"\x28\xb5\x2f\xfd\0", "unsupported_compression", "got a zstd archive, expected a log, plain or gzip"),
        (b"7z\xbc\xaf\x27\x1c", "unsupported_compression", "got a 7z archive, expected a log, plain or gzip"),
        (b"\x1f\x9d\x90", "unsupported_compression", "got a compress archive, expected a log, plain or gzip"),
        ("{}".encode("utf-16"), "unsupported_encoding", "got text in UTF-16, expected text in UTF-8"),
        (gzip.compress(b"")[:10] + b"\xff\xff", "corrupt", "got a damaged archive, expected gzip that can be unpacked"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", [1, 1 << 16])
def test_what_nobody_here_reads_is_refused_each_time_it_is_read(content, reason, said, size):
    reader, writer = os.pipe()
    pipe = Pipe(reader)
    refused = []
    for at in range(0, len(content), size):
        os.write(writer, content[at : at + size])
        try:
            assert pipe.read(0, 100) == b""
        except UnreadableError as error:
            refused.append((error.reason, str(error)))
    assert set(refused) == {(reason, said)}
    os.close(writer)
    os.close(reader)
