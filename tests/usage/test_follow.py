from __future__ import annotations

import gzip
import os
import random

import pytest

from prefix_cache_exporter.usage import follow, positions
from support.logs import Logs, ids, record


def test_reads_what_is_there_and_what_is_added(tmp_path):
    logs = Logs(tmp_path)
    logs.append(record(1) + record(2))
    assert ids(logs.poll()) == ["L1", "L2"]
    assert logs.poll() == []
    logs.append(record(3))
    assert ids(logs.poll(0.1)) == ["L3"]
    assert (logs.follower.files, logs.follower.unread_bytes, logs.follower.readable) == (1, 0, True)


def test_finds_new_files_within_a_second(tmp_path):
    logs = Logs(tmp_path, "*.jsonl", "deep/**/x.jsonl")
    assert logs.poll() == []
    assert not logs.follower.readable
    logs.write(record(1), "a.jsonl")
    (tmp_path / "deep/er").mkdir(parents=True)
    logs.write(record(2), "deep/er/x.jsonl")
    assert sorted(ids(logs.poll(follow.LOOK_SECONDS))) == ["L1", "L2"]
    assert logs.follower.readable


def test_reads_a_file_under_several_names_once(tmp_path):
    logs = Logs(tmp_path, "*.log", "app.log", "link")
    logs.write(record(1))
    (tmp_path / "link").symlink_to("app.log")
    os.link(tmp_path / "app.log", tmp_path / "hard.log")
    assert ids(logs.poll()) == ["L1"]


@pytest.mark.parametrize("pattern", ["app.log", "app.log*"])
@pytest.mark.parametrize("killed", [False, True])
class TestRotation:
    """Each kind while lines are unread, with the rotated file matched by the pattern or not, with a kill or without."""

    def logs(self, tmp_path, pattern):
        logs = Logs(tmp_path, pattern)
        logs.write(record(1) + record(2))
        logs.poll()
        logs.append(record(3))
        return logs

    def check(self, logs, killed):
        if killed:
            logs.kill()
        logs.poll()
        for _ in range(4):
            logs.poll(70)
        logs.append(record(6))
        logs.poll()
        if killed:
            logs.kill()
        logs.poll()
        logs.poll(70)
        assert sorted(ids(logs.lines)) == ["L1", "L2", "L3", "L4", "L5", "L6"]
        assert not logs.lost
        assert not logs.lost_files

    def test_by_rename(self, tmp_path, pattern, killed):
        logs = self.logs(tmp_path, pattern)
        logs.rename()
        logs.append(record(4), "app.log.1")  # the writer still has it open
        logs.write(record(5))
        self.check(logs, killed)

    def test_by_copytruncate(self, tmp_path, pattern, killed):
        logs = self.logs(tmp_path, pattern)
        logs.copytruncate()
        logs.append(record(4) + record(5))
        self.check(logs, killed)

    def test_by_copytruncate_refilled_past_the_old_offset(self, tmp_path, pattern, killed):
        logs = self.logs(tmp_path, pattern)
        logs.copytruncate()
        logs.append(record(4, 10**300) + record(5, 10**300))
        self.check(logs, killed)

    def test_by_copytruncate_with_the_copy_seen_before_the_cut(self, tmp_path, pattern, killed):
        logs = self.logs(tmp_path, pattern)
        logs.write(logs.path().read_bytes()[:100], "app.log.1")
        logs.poll()
        logs.append(record(4))
        logs.write(logs.path().read_bytes(), "app.log.1")
        os.truncate(logs.path(), 0)
        logs.append(record(5))
        self.check(logs, killed)

    def test_by_copytruncate_under_a_writer_that_keeps_its_offset(self, tmp_path, pattern, killed):
        logs = self.logs(tmp_path, pattern)
        size = logs.path().stat().st_size
        logs.copytruncate()
        with logs.path().open("r+b") as file:
            file.seek(size)
            file.write((record(4) + record(5)).encode())
        self.check(logs, killed)

    def test_by_symlink_swap(self, tmp_path, pattern, killed):
        logs = Logs(tmp_path, pattern)
        for number in (0, 1):
            (tmp_path / f"data{number}").mkdir()
        logs.write(record(1) + record(2), "data0/app.log")
        logs.path().symlink_to("data0/app.log")
        logs.poll()
        logs.append(record(3))
        logs.write(record(4), "data1/app.log")
        logs.path("new").symlink_to("data1/app.log")
        logs.rename("app.log", "new")
        if killed:  # nobody could know the old folder after a kill: its file is found again by its own path only
            logs.patterns += [str(tmp_path / "data0/app.log")]
        logs.append(record(5))
        self.check(logs, killed)

    def test_by_deleting_and_recreating(self, tmp_path, pattern, killed):
        logs = self.logs(tmp_path, pattern)
        logs.poll()
        logs.path().unlink()
        logs.write(record(4) + record(5))
        if killed:
            logs.kill()
            logs.poll()
            logs.poll(10)
            assert logs.lost_files == {"gone": 1}  # it may have held more; nobody can tell
            logs.lost_files.clear()
        self.check(logs, killed=False)

    def test_by_packing(self, tmp_path, pattern, killed):
        logs = self.logs(tmp_path, pattern)
        logs.rename()
        logs.append(record(4), "app.log.1")
        logs.gzip()
        logs.write(record(5))
        self.check(logs, killed)

    def test_by_packing_in_place(self, tmp_path, pattern, killed):
        logs = self.logs(tmp_path, pattern)
        logs.append(record(4))
        logs.rename("app.log-20260302")
        logs.poll()
        logs.poll(70)
        logs.gzip("app.log-20260302")
        logs.write(record(5))
        self.check(logs, killed)

    def test_through_a_chain_of_old_files(self, tmp_path, pattern, killed):
        logs = self.logs(tmp_path, pattern)
        logs.rename("app.log.1")
        logs.write(record(4))
        logs.poll()
        logs.poll()
        logs.rename("app.log.2", "app.log.1")
        logs.rename("app.log.1")
        logs.gzip("app.log.2")
        logs.write(record(5))
        self.check(logs, killed)


@pytest.mark.parametrize("killed", [False, True])
def test_a_log_that_only_its_rotated_name_was_ever_seen_of(tmp_path, killed):
    logs = Logs(tmp_path)
    logs.write(record(1))
    logs.poll()
    if killed:
        logs.follower.close()
    logs.append(record(2))
    logs.rename("app.log.2")
    logs.write(record(3))
    logs.rename("app.log.1")
    logs.write(record(4))
    logs.copytruncate("app.log.0")
    logs.write(record(5))
    if killed:
        logs.start()
    logs.poll()
    logs.poll(70)
    logs.gzip("app.log.2")
    logs.gzip("app.log.1")
    logs.poll(70)
    logs.kill()
    logs.poll(70)
    assert sorted(ids(logs.lines)) == ["L1", "L2", "L3", "L4", "L5"]
    assert not logs.lost_files


def test_what_was_rotated_before_the_first_look_is_history(tmp_path):
    logs = Logs(tmp_path)
    logs.write(record(1) * 20, "app.log.1")
    logs.write(gzip.compress(record(2).encode() * 20), "app.log.2.gz")
    logs.write(b"\x28\xb5\x2f\xfd" + os.urandom(100), "app.log.3.zst")
    logs.write(gzip.compress(b"x" * 99)[:-4] + b"abcd", "app.log.4.gz")
    logs.write("", "app.log.5")
    logs.write(record(3) * 20)
    assert set(ids(logs.poll())) == {"L3"}
    logs.kill()
    logs.gzip("app.log.1")
    logs.rename("app.log.9.gz", "app.log.2.gz")
    logs.poll()
    assert set(ids(logs.lines)) == {"L3"}


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


def test_a_finished_file_that_grows_is_read_on(tmp_path):
    logs = Logs(tmp_path)
    logs.write(record(1))
    logs.poll()
    logs.rename()
    logs.write(record(2))
    logs.poll()
    logs.poll(100)
    assert logs.follower.files == 1
    logs.rename("app.log", "app.log.1")  # put back
    logs.append(record(3))
    assert ids(logs.poll()) == ["L3"]


def test_what_cannot_be_found_again_is_counted_once(tmp_path):
    logs = Logs(tmp_path)
    logs.write(record(1) + record(2))
    logs.poll()
    logs.write(record(3))  # truncated: no copy anywhere
    assert ids(logs.poll()) == ["L3"]
    assert not logs.lost_files
    for _ in range(3):
        logs.poll(10)
        logs.kill()
    assert logs.lost_files == {"gone": 1}


def test_another_log_of_the_family_that_begins_alike_is_no_copy(tmp_path):
    banner = "x" * 2000 + "\n"
    logs = Logs(tmp_path, "app*")
    logs.write(banner + record(1))
    logs.poll()
    logs.rename()
    logs.write(banner)
    logs.poll()
    logs.append(record(2))
    logs.poll()
    assert ids([line for line in logs.lines if line[0] == "{"]) == ["L1", "L2"]
    logs.write(gzip.compress((banner + record(3)).encode()), "app.log.2.gz")
    logs.poll()
    assert ids([line for line in logs.lines if line[0] == "{"]) == ["L1", "L2", "L3"]


def test_a_backup_beside_a_live_log_is_not_read(tmp_path):
    logs = Logs(tmp_path, "app*")
    logs.write(record(1) + record(2))
    logs.poll()
    logs.write(logs.path().read_bytes(), "app.log.bak")
    logs.append(record(3))
    logs.poll()
    logs.write(logs.path().read_bytes(), "app.log.bak")
    logs.poll()
    assert ids(logs.lines) == ["L1", "L2", "L3"]


def test_a_log_that_may_not_be_read_for_a_while(tmp_path):
    barred = set()

    def opener(path):
        if path in barred:
            raise PermissionError(13, "denied", path)
        return os.open(path, os.O_RDONLY)

    logs = Logs(tmp_path, "*.log", opener=opener)
    logs.write(record(1))
    logs.poll()
    barred.add(str(logs.path()))
    logs.append(record(2))
    assert ids(logs.poll()) == ["L2"]  # still open
    logs.kill()
    logs.append(record(3))
    for _ in range(3):
        assert logs.poll(10) == []
        assert not logs.follower.readable
    barred.clear()
    assert ids(logs.poll()) == ["L3"]
    assert logs.follower.readable
    assert not logs.lost_files


def test_a_log_that_is_gone_when_it_is_opened(tmp_path):
    def opener(path):
        raise FileNotFoundError(path)

    logs = Logs(tmp_path, opener=opener)
    logs.write(record(1))
    assert logs.poll() == []
    assert logs.follower.readable


def test_a_name_that_changes_hands_between_look_and_open(tmp_path):
    swapped = []

    def opener(path):
        if not swapped:
            swapped.append(path)
            logs.rename()
            logs.write(record(2))
        return os.open(path, os.O_RDONLY)

    logs = Logs(tmp_path, "app.log*", opener=opener)
    logs.write(record(1))
    logs.poll()
    logs.poll()
    assert sorted(ids(logs.lines)) == ["L1", "L2"]


def test_a_stale_handle_is_opened_again(tmp_path):
    logs = Logs(tmp_path)
    logs.write(record(1))
    logs.poll()
    ((_, one),) = logs.follower._tracker.opened
    os.close(one.log.content._fd)
    logs.append(record(2))
    one.log.content.close = lambda: None
    logs.poll()
    logs.poll()
    assert ids(logs.lines) == ["L1", "L2"]


def test_folders_and_devices_are_no_logs(tmp_path):
    logs = Logs(tmp_path, "*", "missing", "/dev/null")
    (tmp_path / "folder").mkdir()
    (tmp_path / "dangling").symlink_to("nowhere")
    os.mkfifo(tmp_path / "fifo")
    assert logs.poll() == []
    assert not logs.follower.readable


def test_an_unreadable_folder_is_said(tmp_path, monkeypatch):
    logs = Logs(tmp_path)
    logs.write(record(1))
    logs.poll()
    logs.kill()

    def refuse(path):
        raise PermissionError(13, "denied", path)

    monkeypatch.setattr(os, "stat", refuse)
    monkeypatch.setattr(os, "scandir", refuse)
    logs.poll()
    logs.poll(10)
    assert not logs.follower.readable
    assert not logs.lost_files
    monkeypatch.undo()
    logs.append(record(2))
    assert ids(logs.poll()) == ["L2"]


def test_a_writer_that_stops_in_the_middle_of_a_line(tmp_path):
    logs = Logs(tmp_path)
    half, rest = record(1)[:40], record(1)[40:]
    logs.append(half)
    for _ in range(5):
        assert logs.poll(60) == []
    logs.rename()
    logs.write(record(2))
    logs.poll()
    logs.poll(300)
    logs.append(rest, "app.log.1")
    logs.poll()
    assert ids(logs.lines) == ["L2", "L1"]
    logs.append(half, "app.log.1")
    logs.poll()
    logs.poll(follow.PARTIAL_SECONDS)
    assert logs.lines[2:] == [half]  # given up: the reader counts it
    assert not logs.lost_files


def test_a_last_line_without_its_end_is_taken_when_it_is_whole(tmp_path):
    logs = Logs(tmp_path)
    logs.append(record(1) + record(2).rstrip())
    assert ids(logs.poll()) == ["L1"]
    assert ids(logs.poll(11)) == ["L2"]
    logs.append("\n" + record(3))
    assert ids(logs.poll()) == ["L3"]
    logs.append(record(4).rstrip())
    logs.poll()
    assert ids(logs.poll(0.1, draining=True)) == ["L4"]
    logs.append(record(5)[:30])
    assert logs.poll(draining=True) == []


def test_standard_input(tmp_path):
    reader, writer = os.pipe()
    logs = Logs(tmp_path, "-", "a.log", stdin=reader)
    assert logs.poll() == []
    os.write(writer, (record(1) + record(2)[:50]).encode())
    assert ids(logs.poll()) == ["L1"]
    assert logs.follower.unread_bytes == 50
    os.write(writer, record(2)[50:].encode())
    logs.write(record(9), "a.log")
    assert ids(logs.poll()) == ["L2", "L9"]
    os.write(writer, (record(3) + "\0\0" + record(4).rstrip()).encode())
    os.close(writer)
    assert ids(logs.poll()) == ["L3", "L4"]
    assert logs.poll() == []
    assert logs.follower.readable
    assert len(logs.cursors) == 1  # a pipe cannot be read again
    os.close(reader)


def test_many_unread_bytes_leave_room_for_new_files(tmp_path):
    logs = Logs(tmp_path, "*.log")
    logs.write(record(1) * 100_000)
    seen = []
    for batch in logs.follower.poll():
        logs.now += 0.3
        if len(seen) == 2:
            logs.write(record(2), "b.log")
        seen.append(len(batch.lines))
    assert sum(seen) == 100_001
    assert max(seen) < 10_000


def test_cursors_of_another_version_are_left_alone(tmp_path):
    logs = Logs(tmp_path)
    logs.cursors = {"1": b"\xc1", "x": positions.dump(positions.Position(1, 2))}
    logs.start()
    logs.write(record(1))
    assert ids(logs.poll()) == ["L1"]


def test_cursors_hold_no_byte_and_no_name_of_a_log(tmp_path):
    logs = Logs(tmp_path, "*secret*")
    logs.write(record("-marker-"), "tenant-secret.log")
    logs.poll()
    assert logs.cursors
    for payload in logs.cursors.values():
        assert b"marker" not in payload
        assert b"secret" not in payload
