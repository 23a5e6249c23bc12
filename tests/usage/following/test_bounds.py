"""More files than may be open, and more logs than are remembered."""

from __future__ import annotations

import gzip

import pytest

from prefix_cache_exporter.usage.following import known, opened, tracker
from support.logs import Logs, ids, record


@pytest.fixture
def logs(tmp_path, monkeypatch):
    monkeypatch.setattr(tracker, "most_open", lambda: 3)
    return Logs(tmp_path, "*.log")


def open_files(logs: Logs) -> int:
    return len(logs.follower._tracker.opened.keys())


def numbers(*ranges: range) -> list[str]:
    return sorted(f"L{number}" for some in ranges for number in some)


@pytest.mark.parametrize("killed", [False, True])
def test_a_look_reads_more_files_than_may_be_open_at_once(logs, killed):
    for number in range(20):
        logs.write(record(number), f"{number}x.log")
    logs.poll()
    assert sorted(ids(logs.lines)) == numbers(range(20))
    assert open_files(logs) <= 3
    assert logs.follower.files == 20
    if killed:
        logs.follower.close()
    for number in range(20):
        logs.append(record(number + 20), f"{number}x.log")
        if number % 3 == 0:
            logs.rename(f"{number}x.log.1", f"{number}x.log")
    if killed:
        logs.start()
    logs.poll()
    logs.poll(10)
    assert sorted(ids(logs.lines)) == numbers(range(40))
    assert open_files(logs) <= 3
    for _ in range(2):
        logs.poll(70)
        logs.kill()
    assert len(logs.lines) == 40
    assert not logs.lost_files


def test_a_quarter_of_what_the_process_may_open(monkeypatch):
    for allowed, most in ((1024, 256), (10, 16), (1 << 20, 4096), (-1, 4096)):
        monkeypatch.setattr(opened.resource, "getrlimit", lambda _, soft=allowed: (soft, soft))
        assert opened.most_open() == most


def test_files_that_wait_for_the_rest_of_a_line_make_room(logs):
    for number in range(5):
        logs.write(record(number) + '{"half', f"{number}x.log")
    logs.poll()
    assert len(logs.lines) == 3  # they may go on any moment
    logs.poll(11)
    assert sorted(ids(logs.lines)) == numbers(range(5))
    logs.append('": 1}\n', "0x.log")
    logs.append('": 1}\n', "4x.log")
    assert logs.poll(11) == ['{"half": 1}'] * 2


def test_rotated_files_make_room_and_are_read_on_all_the_same(logs):
    for number in range(3):
        logs.write(record(number), f"{number}x.log")
    logs.poll()
    for number in range(3):
        logs.rename(f"{number}x.log.1", f"{number}x.log")
        logs.write(record(number + 10), f"{number}x.log")
    logs.poll()
    for number in range(3):
        logs.append(record(number + 20), f"{number}x.log.1")  # a late writer
    logs.poll()
    assert sorted(ids(logs.lines)) == numbers(range(3), range(10, 13), range(20, 23))
    for number in range(3):
        logs.path(f"{number}x.log.1").unlink()
    logs.poll(70)
    logs.poll(70)
    assert not logs.lost_files


def test_a_file_that_was_closed_at_rest_is_written_anew(logs):
    for number in range(9):
        logs.write(record(number), f"{number}x.log")
    logs.poll()
    logs.copytruncate("0x.log.1", "0x.log")
    logs.append(record(10), "0x.log")
    logs.write(record(11), "1x.log")
    logs.poll()
    logs.poll(6)
    logs.poll(6)
    assert sorted(ids(logs.lines)) == numbers(range(9), range(10, 12))
    assert logs.lost_files == {"gone": 1}  # no copy of it anywhere: it may have held more


@pytest.mark.parametrize(("idle", "lost"), [(10, 1), (70, 0)])
def test_a_file_that_was_closed_at_rest_is_deleted(logs, idle, lost):
    for number in range(8):
        logs.write(record(number), f"{number}x.log")
    logs.poll()
    still_open = open_files(logs)
    logs.poll(idle)
    for number in range(8):
        logs.path(f"{number}x.log").unlink()
    for _ in range(3):
        logs.poll(70)
    assert logs.lost_files["gone"] == lost * (
        8 - still_open
    )  # it may have held more; not if it had been quiet for so long


def test_known_logs_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(known, "MOST_KNOWN", 3)
    logs = Logs(tmp_path, "*.gz")
    for number in range(8):
        logs.write(gzip.compress(record(number).encode()), f"{number}x.gz")
    logs.poll()
    logs.kill()
    logs.poll()
    assert len(logs.lines) == 8  # still there: still known
    for number in range(8):
        logs.path(f"{number}x.gz").unlink()
    logs.write(gzip.compress(record(9).encode()), "9x.gz")
    logs.poll()
    assert len(logs.cursors) <= 4
