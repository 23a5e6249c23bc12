"""Which log a file holds: a known one, a copy of one, or its own."""

from __future__ import annotations

import gzip
import os

from support.logs import Logs, ids, record


def test_reads_a_file_under_several_names_once(tmp_path):
    logs = Logs(tmp_path, "*.log", "app.log", "link")
    logs.write(record(1))
    (tmp_path / "link").symlink_to("app.log")
    os.link(tmp_path / "app.log", tmp_path / "hard.log")
    assert ids(logs.poll()) == ["L1"]


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
