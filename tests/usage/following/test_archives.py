"""Packed logs: whole, half written, damaged."""

from __future__ import annotations

import gzip
import os
import random

import pytest

from support.logs import Logs, ids, record


def test_packed_archives_are_read_whole_and_once(tmp_path):
    logs = Logs(tmp_path, "*.gz")
    members = gzip.compress(record(1).encode()) + gzip.compress(record(2).encode()) + b"\0" * 512
    logs.write(members, "old.gz")
    assert ids(logs.poll()) == ["L1", "L2"]
    logs.kill()
    assert logs.poll() == []
    logs.append(gzip.compress(record(3).encode()), "old.gz")  # somebody adds a member
    assert ids(logs.poll()) == ["L3"]
    logs.kill()
    assert logs.poll() == []


def test_an_archive_is_taken_as_far_as_it_is_written(tmp_path):
    logs = Logs(tmp_path, "*.gz")
    random.seed(1)
    whole = gzip.compress("".join(record(n, random.getrandbits(900)) for n in range(200)).encode())
    logs.write(whole[:30_000], "old.gz")
    taken = len(logs.poll())
    assert 0 < taken < 200
    logs.append(whole[30_000:], "old.gz")
    assert len(logs.poll()) == 200 - taken
    assert ids(logs.lines) == [f"L{n}" for n in range(200)]
    assert not logs.lost_files


def test_an_archive_that_is_never_finished_is_counted(tmp_path):
    logs = Logs(tmp_path, "*.gz")
    logs.write(gzip.compress(record(1).encode())[:-9], "old.gz")
    logs.poll()
    logs.poll(70)
    logs.poll(70)
    assert ids(logs.lines) == ["L1"]
    assert logs.lost_files == {"incomplete": 1}
    logs.kill()
    logs.poll()
    logs.poll(70)
    assert logs.lost_files == {"incomplete": 1}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (gzip.compress(os.urandom(5000))[:-3000] + b"x" * 3000, "corrupt"),
        (b"\x28\xb5\x2f\xfd" + os.urandom(100), "unsupported_compression"),
        (b"BZh91AY&SY" + os.urandom(100), "unsupported_compression"),
    ],
)
def test_no_byte_of_an_unreadable_archive_passes_for_a_line(tmp_path, content, reason):
    logs = Logs(tmp_path, "*")
    logs.write(content, "a")
    logs.write(record(1), "b")
    for _ in range(3):
        logs.poll()
        logs.kill()
    assert ids(logs.lines) == ["L1"]
    assert logs.lost_files == {reason: 1}
    logs.write(record(2), "a")
    assert ids(logs.poll()) == ["L2"]


@pytest.mark.parametrize("pattern", ["app.log", "app.log*"])
def test_a_log_is_being_packed_while_nobody_has_it_open(tmp_path, pattern):
    logs = Logs(tmp_path, pattern)
    random.seed(1)
    logs.write("".join(record(n, random.getrandbits(900)) for n in range(200)))
    logs.poll()
    logs.follower.close()
    logs.append(record(200))
    whole = gzip.compress(logs.path().read_bytes())
    logs.path().unlink()
    logs.write(whole[: len(whole) // 2], "app.log.1.gz")
    logs.start()
    logs.poll()
    logs.append(whole[len(whole) // 2 :], "app.log.1.gz")
    logs.poll()
    assert ids(logs.lines) == [f"L{n}" for n in range(201)]
    assert not logs.lost_files
