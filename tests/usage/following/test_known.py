"""Positions as they are stored."""

from __future__ import annotations

from prefix_cache_exporter.usage import positions
from support.logs import Logs, ids, record


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
