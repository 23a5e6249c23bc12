"""Files that are gone, swapped or barred when they are opened."""

from __future__ import annotations

import os

from support.logs import Logs, ids, record


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
