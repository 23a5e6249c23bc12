"""What lay there before the first look is history."""

from __future__ import annotations

import gzip
import os

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
