"""What a look at the disk finds, and what it cannot see."""

from __future__ import annotations

import os

from prefix_cache_exporter.usage import follow
from support.logs import Logs, ids, record


def test_finds_new_files_within_a_second(tmp_path):
    logs = Logs(tmp_path, "*.jsonl", "deep/**/x.jsonl")
    assert logs.poll() == []
    assert not logs.follower.readable
    logs.write(record(1), "a.jsonl")
    (tmp_path / "deep/er").mkdir(parents=True)
    logs.write(record(2), "deep/er/x.jsonl")
    assert sorted(ids(logs.poll(follow.LOOK_SECONDS))) == ["L1", "L2"]
    assert logs.follower.readable


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
