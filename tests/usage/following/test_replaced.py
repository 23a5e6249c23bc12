"""Files that another one is moved over, as rsync does, and whoever writes a file anew."""

from __future__ import annotations

import pytest

from support.logs import Logs, ids, record


def replace(logs: Logs, text: str) -> None:
    logs.write(text, "new.tmp")
    logs.rename("app.log", "new.tmp")


@pytest.mark.parametrize("pattern", ["app.log", "app.log*"])
@pytest.mark.parametrize("killed", [False, True])
class TestMoved:
    def check(self, logs, expected):
        for _ in range(3):
            logs.poll(70)
            logs.kill()
        assert ids(logs.lines) == expected
        assert not logs.lost_files

    def test_the_same_and_more(self, tmp_path, pattern, killed):
        logs = Logs(tmp_path, pattern)
        text = record(1) + record(2)
        logs.write(text)
        logs.poll()
        for number in range(3, 6):
            text += record(number)
            replace(logs, text)
            if killed:
                logs.kill()
            logs.poll()
        self.check(logs, ["L1", "L2", "L3", "L4", "L5"])

    def test_the_same_in_the_middle_of_a_line(self, tmp_path, pattern, killed):
        logs = Logs(tmp_path, pattern)
        text = record(1) + record(2) + record(3)
        logs.write(text[:-20])
        logs.poll()
        replace(logs, text + record(4))
        if killed:
            logs.kill()
        logs.poll()
        self.check(logs, ["L1", "L2", "L3", "L4"])

    def test_the_same_which_grows_later(self, tmp_path, pattern, killed):
        logs = Logs(tmp_path, pattern)
        logs.write(record(1) + record(2))
        logs.poll()
        replace(logs, record(1) + record(2))
        if killed:
            logs.kill()
        logs.poll()
        logs.append(record(3))
        logs.poll()
        self.check(logs, ["L1", "L2", "L3"])

    def test_an_array_with_more_in_it(self, tmp_path, pattern, killed):
        logs = Logs(tmp_path, pattern)
        items = [record(1).strip()]
        logs.write(f"[{items[0]}]\n")
        logs.poll()
        for number in range(2, 5):
            items.append(record(number).strip())
            replace(logs, "[" + ",\n".join(items) + "]\n")
            if killed:
                logs.kill()
            logs.poll()
        self.check(logs, ["L1", "L2", "L3", "L4"])


def test_the_same_and_more_while_much_of_the_old_is_unread(tmp_path):
    logs = Logs(tmp_path)
    text = record(0)
    logs.write(text)
    logs.poll()
    text += "".join(record(number) for number in range(1, 4000))
    logs.write(text)
    replace(logs, text + record(4000))
    logs.poll()
    logs.poll()
    assert ids(logs.lines) == [f"L{number}" for number in range(4001)]


def test_a_file_that_is_truncated_between_two_looks(tmp_path):
    logs = Logs(tmp_path)
    logs.write(record(1) + record(2))
    logs.poll()
    logs.append(record(3))
    logs.copytruncate()
    logs.append(record(4))
    assert sorted(ids(logs.poll(0.1))) == ["L3", "L4"]
    assert not logs.lost_files
