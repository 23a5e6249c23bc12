"""The rest of a log whose file is gone."""

from __future__ import annotations

import os

import pytest

from prefix_cache_exporter.usage import files
from support.logs import Logs, ids, record


def test_a_rest_in_a_file_that_may_not_be_opened_is_not_given_up(tmp_path):
    barred = set()

    def opener(path):
        if path in barred:
            raise PermissionError(13, "denied", path)
        return os.open(path, os.O_RDONLY)

    logs = Logs(tmp_path, opener=opener)
    logs.write(record(1))
    logs.poll()
    logs.follower.close()
    logs.append(record(2))
    logs.rename()
    logs.gzip()
    barred.add(str(logs.path("app.log.1.gz")))
    logs.start()
    for _ in range(5):
        logs.poll(10)
    assert ids(logs.lines) == ["L1"]
    barred.clear()
    logs.poll()
    assert ids(logs.lines) == ["L1", "L2"]
    assert not logs.lost_files


@pytest.mark.parametrize(
    "rotated",
    [
        "app.log.1",
        "app.log.1.gz",
        "app.log-20260302",
        "app.log-20260302-1772452800.xz",
        "app-2026-03-02.log",
        "app.log.2026-03-02T12:00:00.123Z",
        "app.log.2026-03-02_12-00-00",  # Python
        "app-2026-03-02T12-00-00.123.log.gz",  # lumberjack: Caddy, Traefik and other Go programs
        "app__2026-03-02_12-00-00.log",  # pm2
        "app.2026-03-02.0.log",  # logback
        "app-03-02-2026-1.log.gz",  # log4j
        "app-2026-03-02-12.log",  # winston
        "app.log.bak",
        "app.log.1-2026030212.backup",  # logrotate, where the name is taken
        "app.log.old.tmp",
    ],
)
def test_names_that_rotation_makes(rotated):
    assert files.family(f"/logs/{rotated}") == files.family("/logs/app.log")


@pytest.mark.parametrize("other", ["app2.log", "myapp.log", "app.txt", "app.log.d", "app-v2.log", "app.log.123456"])
def test_names_that_rotation_does_not_make(other):
    assert files.family(f"/logs/{other}") != files.family("/logs/app.log")


def test_a_log_that_the_patterns_no_longer_match_is_not_lost(tmp_path):
    logs = Logs(tmp_path, "one/*.log")
    for folder in ("one", "two"):
        logs.path(folder).mkdir()
    logs.write(record(1) * 5, "one/app.log")
    logs.write(record(2) * 5, "two/app.log")
    logs.poll()
    before = list(logs.patterns)
    logs.patterns, logs.options["resumed"] = [str(tmp_path / "two" / "*.log")], False
    logs.kill()
    logs.poll()
    logs.poll(10)
    assert not logs.lost_files
    logs.append(record(3), "one/app.log")
    logs.patterns += before
    logs.kill()
    logs.poll()
    logs.poll(10)
    assert ids(logs.lines) == ["L1"] * 5 + ["L2"] * 5 + ["L3"]
    assert not logs.lost_files
