from __future__ import annotations

import gzip
import json
import os

import pytest

from prefix_cache_exporter.usage.contents import UnreadableError
from prefix_cache_exporter.usage.finished import numbered

A, B = b'{"a": 1}', b'{"b": 2}'


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", []),
        (b"\n \n", []),
        (A + b"\n\n \r\n" + A + b"\n" + B, [("line 1", A), ("line 4", A), ("line 5", B)]),
        (b"\xef\xbb\xbf" + A + b"\r\n" + B + b"\r\n", [("line 1", A + b"\r"), ("line 2", B + b"\r")]),
        (b"[" + A + b",\n" + B + b"]", [("record 1", A), ("record 2", B)]),
        (gzip.compress(A + b"\n\n" + B + b"\n"), [("record 1", A), ("record 2", B)]),
        (b"2026-03-02T19:59:00.1Z stdout F " + A + b"\n", [("record 1", A)]),
    ],
)
def test_lines_have_the_numbers_that_an_editor_shows(tmp_path, content, expected):
    log = tmp_path / "log"
    log.write_bytes(content)
    assert list(numbered(str(log))) == expected


def test_a_line_that_is_too_long_has_its_place_and_counts(tmp_path):
    log = tmp_path / "log"
    log.write_bytes(A + b"\n" + b"x" * 100 + b"\n" + B + b"\n")
    assert list(numbered(str(log), limit=50)) == [("line 1", A), ("line 3", B), ("behind line 3", "too_long")]
    log.write_bytes(A + b"\n" + b"x" * (5 << 20) + b"\n" + B + b"\n")
    assert list(numbered(str(log), limit=50)) == [("line 1", A), ("behind line 1", "too_long"), ("line 3", B)]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_text_in_utf_16_is_refused_and_not_taken_for_lines(tmp_path, encoding):
    log = tmp_path / "log"
    log.write_bytes((b"" if encoding == "utf-16" else b"\xfe\xff") + json.dumps({"id": "a"}).encode(encoding))
    with pytest.raises(UnreadableError, match="got text in UTF-16, expected text in UTF-8"):
        list(numbered(str(log)))


def test_an_archive_that_ends_too_early_is_said_to_behind_what_was_in_it(tmp_path):
    log = tmp_path / "log.gz"
    log.write_bytes(gzip.compress(A + b"\n" + B + b"\n" + os.urandom(99))[:-50])
    seen = numbered(str(log))
    assert [next(seen), next(seen)] == [("record 1", A), ("record 2", B)]
    with pytest.raises(UnreadableError, match="got an archive cut short, expected one that is whole"):
        list(seen)


@pytest.mark.parametrize("content", [A + b"\n" + B, gzip.compress(A + b"\n" + B)])
def test_what_a_shell_gives_in_place_of_a_file(content):
    reader, writer = os.pipe()
    os.write(writer, content)
    os.close(writer)
    assert [line for _, line in numbered(f"/dev/fd/{reader}")] == [A, B]
    os.close(reader)
