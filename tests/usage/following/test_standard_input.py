"""Standard input that is packed: read as it comes, or given up with the reason."""

from __future__ import annotations

import bz2
import gzip
import os

import pytest

from prefix_cache_exporter.usage.following.piped import Piped
from support.logs import Logs, ids, record


@pytest.fixture
def piped(tmp_path):
    reader, writer = os.pipe()
    logs = Logs(tmp_path, "-", stdin=Piped(reader))
    yield logs, writer
    logs.follower.close()
    os.close(reader)


def test_gzip_is_unpacked_as_it_comes(piped):
    logs, writer = piped
    first, second = (gzip.compress(record(number).encode()) for number in (1, 2))
    os.write(writer, first[:1])
    assert logs.poll() == []
    os.write(writer, first[1:])
    assert ids(logs.poll()) == ["L1"]
    os.write(writer, second[:-8])
    assert ids(logs.poll()) == ["L2"]
    os.write(writer, second[-8:])
    os.close(writer)
    assert logs.poll() == []
    assert not logs.lost
    assert not logs.lost_files


def test_another_archive_is_given_up_once_and_none_of_it_is_a_line(piped):
    logs, writer = piped
    os.write(writer, bz2.compress(record(1).encode()))
    for _ in range(3):
        assert logs.poll() == []
    os.close(writer)
    assert logs.lost_files == {"unsupported_compression": 1}
    assert not logs.lost


def test_an_archive_that_ends_too_early_is_lost_but_for_what_came(piped):
    logs, writer = piped
    os.write(writer, gzip.compress(record(1).encode())[:-4])
    os.close(writer)
    assert ids(logs.poll()) == ["L1"]
    assert logs.poll() == []
    assert logs.lost_files == {"incomplete": 1}


def test_what_was_read_of_a_line_is_left_to_who_follows_next(piped):
    logs, writer = piped
    line = record(2)
    os.write(writer, (record(1) + line[:20]).encode())
    assert ids(logs.poll()) == ["L1"]
    logs.kill()  # a reload: the process goes on
    os.write(writer, line[20:].encode())
    assert ids(logs.poll()) == ["L2"]
    assert not logs.lost


def test_parts_of_container_lines_and_of_archives_are_left_too(tmp_path):
    reader, writer = os.pipe()
    logs = Logs(tmp_path, "-", stdin=Piped(reader))
    first, second = (
        f"2026-03-02T12:00:00.000000001Z stdout {record(number).strip()}".split(" ", 2) for number in (1, 2)
    )
    packed = gzip.compress(
        "".join(
            f"{time} {stream} {tag} {text}\n"
            for time, stream, tag, text in (
                (*first[:2], "F", first[2]),
                (*second[:2], "P", second[2][:10]),
                (*second[:2], "F", second[2][10:]),
            )
        ).encode()
    )
    found = []
    for at in range(0, len(packed), 7):
        os.write(writer, packed[at : at + 7])
        found += ids(logs.poll())
        logs.kill()
    os.close(writer)
    found += ids(logs.poll())
    assert found == ["L1", "L2"]
    logs.kill()
    assert logs.poll() == []
    assert not logs.lost
    assert not logs.lost_files
    os.close(reader)


def test_an_archive_that_was_given_up_is_not_given_up_again_by_who_follows_next(piped):
    logs, writer = piped
    os.write(writer, bz2.compress(record(1).encode()))
    assert logs.poll() == []
    logs.kill()
    os.write(writer, record(2).encode())  # of the same archive, for all that is known
    assert logs.poll() == []
    assert logs.lost_files == {"unsupported_compression": 1}


def test_a_longer_line_is_taken_once_it_may_be(piped):
    logs, writer = piped
    logs.options["line_limit"] = 4096
    os.write(writer, b'{"id": "L1", "text": "' + b"x" * 2000)
    assert logs.poll() == []
    logs.kill()
    os.write(writer, b"x" * 1500 + b'"}\n')
    assert ids(logs.poll()) == ["L1"]
