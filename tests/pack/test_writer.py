from __future__ import annotations

import pytest

from prefix_cache_exporter.pack.producers import Producer
from prefix_cache_exporter.pack.settings import default_settings
from prefix_cache_exporter.pack.writer import PackError, drift, outputs, write

PRODUCER = Producer("out", lambda _: {"b.yaml": "b: 1\n", "a.yaml": "a: 1\n"}, frozenset({"README.md"}))


def files(root):
    return outputs([PRODUCER], default_settings(), root)


def test_writes_what_differs_and_nothing_else(tmp_path):
    assert [path.name for path in write(files(tmp_path))] == ["a.yaml", "b.yaml"]
    assert write(files(tmp_path)) == []
    (tmp_path / "out/a.yaml").write_text("a: 2\n")
    assert [path.name for path in write(files(tmp_path))] == ["a.yaml"]
    assert (tmp_path / "out/a.yaml").read_text() == "a: 1\n"


def test_drift_is_a_diff(tmp_path):
    write(files(tmp_path))
    assert drift(files(tmp_path)) == ""
    (tmp_path / "out/a.yaml").write_text("a: 2\n")
    (tmp_path / "out/b.yaml").unlink()
    assert [line for line in drift(files(tmp_path)).splitlines() if line[:3] not in {"---", "+++"}] == [
        "@@ -1 +1 @@",
        "-a: 2",
        "+a: 1",
        "@@ -0,0 +1 @@",
        "+b: 1",
    ]


def test_an_unknown_file_is_an_error_and_a_kept_one_is_not(tmp_path):
    write(files(tmp_path))
    (tmp_path / "out/README.md").write_text("by hand\n")
    assert files(tmp_path)
    (tmp_path / "out/old.yaml").write_text("left over\n")
    with pytest.raises(PackError, match=r"old\.yaml: file: got an unknown file") as caught:
        files(tmp_path)
    assert caught.value.files == [tmp_path / "out/old.yaml"]
