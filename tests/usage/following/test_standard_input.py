"""Standard input that is packed: read as it comes, or given up with the reason."""

from __future__ import annotations

import bz2
import gzip
import os

import pytest

from support.logs import Logs, ids, record


@pytest.fixture
def piped(tmp_path):
    reader, writer = os.pipe()
    logs = Logs(tmp_path, "-", stdin=reader)
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
