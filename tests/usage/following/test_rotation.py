"""Every kind of rotation, with lines unread, with a kill or without."""

from __future__ import annotations

import os

import pytest

from support.logs import Logs, ids, record


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


@pytest.mark.parametrize("pattern", ["app.log", "app.log*"])
@pytest.mark.parametrize("killed", [False, True])
def test_lines_come_in_the_order_in_which_they_were_written(tmp_path, pattern, killed):
    """Of two lines about one request the later one holds: the end of a stream must not come before its beginning."""
    logs = Logs(tmp_path, pattern)
    logs.write(record(1))
    logs.poll()
    for age, (number, text) in enumerate([(2, record(2) * 30_000), (3, record(3)), (4, record(4))]):
        logs.append(text)
        os.utime(logs.path(), (1_000 + age, 1_000 + age))
        if number < 4:
            logs.rename(f"app.log.{number}")
    if killed:
        logs.kill()
    assert ids(logs.poll()) == ["L2"] * 30_000 + ["L3", "L4"]
