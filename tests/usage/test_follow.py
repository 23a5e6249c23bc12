from __future__ import annotations

import os

from prefix_cache_exporter.usage import follow
from prefix_cache_exporter.usage.following.piped import Piped
from support.logs import Logs, ids, record


def test_reads_what_is_there_and_what_is_added(tmp_path):
    logs = Logs(tmp_path)
    logs.append(record(1) + record(2))
    assert ids(logs.poll()) == ["L1", "L2"]
    assert logs.poll() == []
    logs.append(record(3))
    assert ids(logs.poll(0.1)) == ["L3"]
    assert (logs.follower.files, logs.follower.unread_bytes, logs.follower.readable) == (1, 0, True)


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
    logs = Logs(tmp_path, "-", "a.log", stdin=Piped(reader))
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
