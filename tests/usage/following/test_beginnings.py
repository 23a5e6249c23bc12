"""What lay there before the first look is history."""

from __future__ import annotations

import gzip
import os
from collections import Counter

import pytest

from support.logs import Logs, ids, record


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


@pytest.mark.parametrize("seen", ["another.log", None], ids=["beside another log", "in an empty folder"])
def test_what_was_rotated_between_two_looks_is_none(tmp_path, seen):
    logs = Logs(tmp_path, "*.log")
    if seen:
        logs.write(record(9) * 20, seen)
    logs.poll()
    for number in (1, 2):
        logs.write(record(number) * 20)
        logs.rename(f"app.log.{number}")
    logs.write(record(3) * 20)
    for _ in range(3):
        logs.poll()
    assert Counter(ids(logs.lines)) - Counter(L9=20) == {"L1": 20, "L2": 20, "L3": 20}


@pytest.mark.parametrize("resumed", [True, False], ids=["the same patterns", "other patterns"])
def test_what_was_rotated_while_nobody_looked_is_none_where_its_name_was_looked_for(tmp_path, resumed):
    logs = Logs(tmp_path, "*.log")
    logs.write(record(9) * 20, "another.log")
    logs.write(record(1) * 20, "app.log.1")  # before
    os.utime(tmp_path / "app.log.1", (1, 1))
    logs.poll()
    logs.options["resumed"] = resumed
    logs.kill()
    logs.write(record(2) * 20, "app.log.2")
    logs.write(record(3) * 20)
    for _ in range(3):
        logs.poll()
    expected = {"L2": 20, "L3": 20} if resumed else {"L3": 20}
    assert Counter(ids(logs.lines)) - Counter(L9=20) == expected
