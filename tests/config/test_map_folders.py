from __future__ import annotations

from prefix_cache_exporter.config.model import MapSettings


def test_each_plane_reads_its_own_kind_of_maps(tmp_path):
    both, one = tmp_path / "both", tmp_path / "one"
    for folder in (both / "vllm", both / "usage", one / "usage"):
        folder.mkdir(parents=True)
    settings = MapSettings(folders=(both, one))

    assert settings.of("vllm") == (both / "vllm",)
    assert settings.of("usage") == (both / "usage", one / "usage")


def test_a_folder_that_is_not_there_is_passed_on(tmp_path):
    assert MapSettings(folders=(tmp_path / "nowhere",)).of("vllm") == (tmp_path / "nowhere" / "vllm",)
