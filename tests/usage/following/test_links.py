"""Kubelet's way: a link in one folder, the log and what rotation makes of it in another."""

from __future__ import annotations

import pytest

from support.logs import Logs, ids, record

POD = "pods/ns_web-0_uid/main"


def link(logs: Logs, *, container: str = "ab12" * 16, log: str = "0.log") -> None:
    (logs.folder / "containers").mkdir(exist_ok=True)
    logs.path(POD).mkdir(parents=True, exist_ok=True)
    logs.path(f"containers/web-0_ns_main-{container}.log").symlink_to(logs.path(f"{POD}/{log}"))


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("pattern", ["containers/*.log", f"{POD}/*.log", f"{POD}/*.log*"])
def test_a_log_behind_a_link_is_rotated_and_packed_under_its_own_name(tmp_path, pattern, killed):
    logs = Logs(tmp_path, pattern)
    link(logs)
    logs.write(record(1) + record(2), f"{POD}/0.log")
    assert ids(logs.poll()) == ["L1", "L2"]
    logs.append(record(3), f"{POD}/0.log")
    if killed:
        logs.follower.close()
    logs.rename(f"{POD}/0.log.20260302-120000", f"{POD}/0.log")
    logs.write(record(4), f"{POD}/0.log")
    if not killed:
        logs.poll()
    logs.gzip(f"{POD}/0.log.20260302-120000")
    logs.rename(f"{POD}/0.log.20260302-121000", f"{POD}/0.log")
    logs.write(record(5), f"{POD}/0.log")
    if killed:
        logs.start()
    for _ in range(3):
        logs.poll()
    logs.gzip(f"{POD}/0.log.20260302-121000")
    for _ in range(3):
        logs.poll(70)
        logs.kill()
    assert sorted(ids(logs.lines)) == ["L1", "L2", "L3", "L4", "L5"]
    assert not logs.lost_files


def test_a_container_that_was_restarted_has_a_log_of_its_own(tmp_path):
    logs = Logs(tmp_path, "containers/*.log")
    link(logs)
    logs.write(record(1), f"{POD}/0.log")
    logs.poll()
    link(logs, container="cd34" * 16, log="1.log")
    logs.append(record(2), f"{POD}/0.log")
    logs.write(record(3), f"{POD}/1.log")
    logs.poll()
    logs.path(f"containers/web-0_ns_main-{'ab12' * 16}.log").unlink()
    logs.path(f"{POD}/0.log").unlink()
    for _ in range(3):
        logs.poll(70)
        logs.kill()
    assert sorted(ids(logs.lines)) == ["L1", "L2", "L3"]
    assert not logs.lost_files
