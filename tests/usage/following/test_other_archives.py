"""Archives that nobody here reads: what is lost with them, and what is not."""

from __future__ import annotations

import gzip
import os

import pytest

from support.logs import Logs, ids, record

XZ = b"\xfd7zXZ\0"


def pack(logs: Logs, name: str, to: str, *, exact: int = 1) -> None:
    """Packs a file as `xz` does: the archive has the time of what it holds, in so many nanoseconds."""
    time = logs.path(name).stat().st_mtime_ns // exact * exact
    logs.write(XZ + os.urandom(80), to)
    os.utime(logs.path(to), ns=(time, time))
    logs.path(name).unlink()


@pytest.mark.parametrize("pattern", ["app.log", "app.log*"])
@pytest.mark.parametrize("idle", [1, 70])
@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("exact", [1, 1_000_000_000])  # bzip2 keeps whole seconds
def test_a_log_that_was_read_before_it_was_packed_is_not_lost(tmp_path, pattern, idle, killed, exact):
    logs = Logs(tmp_path, pattern)
    logs.write(record(1))
    logs.poll()
    logs.rename()
    logs.write(record(2))
    logs.poll()
    logs.poll(idle)
    if killed:
        logs.kill()
    pack(logs, "app.log.1", "app.log.2.xz", exact=exact)
    for _ in range(3):
        logs.poll(70)
        logs.kill()
    logs.rename("app.log.3.xz", "app.log.2.xz")
    logs.poll()
    assert ids(logs.lines) == ["L1", "L2"]
    assert not logs.lost_files


def test_what_was_written_after_the_kill_is_lost_with_the_archive(tmp_path):
    logs = Logs(tmp_path)
    logs.write(record(1))
    logs.poll()
    logs.follower.close()
    logs.append(record(2))
    os.utime(logs.path(), (1_772_452_800, 1_772_452_800))
    pack(logs, "app.log", "app.log.1.xz")
    logs.write(record(3))
    logs.start()
    for _ in range(3):
        logs.poll(70)
    logs.kill()
    logs.poll(70)
    assert ids(logs.lines) == ["L1", "L3"]
    assert logs.lost_files == {"unsupported_compression": 1, "gone": 1}


def test_a_log_that_nobody_saw_before_it_was_packed_is_lost(tmp_path):
    logs = Logs(tmp_path)
    logs.write(record(1))
    logs.poll()
    logs.write(record(2), "app.log.1")
    os.utime(logs.path("app.log.1"), (1_772_452_800, 1_772_452_800))
    pack(logs, "app.log.1", "app.log.1.xz")
    for _ in range(3):
        logs.poll(70)
        logs.kill()
    assert logs.lost_files == {"unsupported_compression": 1}


def test_archives_from_before_the_first_look_are_history(tmp_path):
    logs = Logs(tmp_path)
    logs.write(XZ + os.urandom(80), "app.log.3.xz")
    logs.write(gzip.compress(b"x" * 99)[:-4] + b"abcd", "app.log.2.gz")
    logs.write(record(1))
    for _ in range(3):
        logs.poll()
        logs.kill()
    logs.rename("app.log.4.xz", "app.log.3.xz")
    logs.poll()
    assert ids(logs.lines) == ["L1"]
    assert not logs.lost_files
