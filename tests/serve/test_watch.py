from __future__ import annotations

from pathlib import Path

from prefix_cache_exporter.config.load import parse_config
from prefix_cache_exporter.serve.watch import Watch, files_of


def test_a_config_map_is_updated_by_a_symlink_swap(tmp_path):
    """B37: the file's own name and target text never change, a folder link two steps up does."""
    for turn, text in (("one", "a: 1"), ("two", "a: 2")):
        (tmp_path / turn).mkdir()
        (tmp_path / turn / "config.yml").write_text(text)
    (tmp_path / "..data").symlink_to("one")
    (tmp_path / "config.yml").symlink_to("..data/config.yml")
    file, watch = tmp_path / "config.yml", Watch()
    assert not watch.changed([file])
    assert not watch.changed([file])

    (tmp_path / "new").symlink_to("two")
    (tmp_path / "new").rename(tmp_path / "..data")
    assert watch.changed([file])
    assert not watch.changed([file])


def test_the_same_content_written_again_is_no_change(tmp_path):
    file, watch = tmp_path / "config.yml", Watch()
    file.write_text("a: 1")
    watch.changed([file])
    file.unlink()
    file.write_text("a: 1")
    assert not watch.changed([file])


def test_a_file_that_goes_away_or_comes_is_a_change(tmp_path):
    file, watch = tmp_path / "config.yml", Watch()
    watch.changed([file])
    file.write_text("a: 1")
    assert watch.changed([file])
    file.unlink()
    assert watch.changed([file])
    assert watch.changed([])


def test_the_files_that_a_configuration_names(tmp_path):
    maps = tmp_path / "maps"
    (maps / "usage").mkdir(parents=True)
    (maps / "usage" / "own.yaml").write_text("")
    (maps / "README").write_text("")
    config = parse_config(f"maps: {{folders: [{maps}]}}\nprices: {{files: [/p.yaml]}}\ninventory: {{file: /i.yaml}}\n")
    assert list(files_of(config, Path("/c.yml"))) == [
        Path("/c.yml"),
        Path("/p.yaml"),
        Path("/i.yaml"),
        maps / "usage" / "own.yaml",
    ]
    assert list(files_of(parse_config(""), None)) == []
