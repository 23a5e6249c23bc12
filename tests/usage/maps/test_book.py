from __future__ import annotations

import re
from pathlib import Path

import pytest

from prefix_cache_exporter.usage.intake import Intake
from prefix_cache_exporter.usage.maps.book import MapBook, UnknownFormatError, get_map
from support.usage import counts, encode
from support.usage_maps import IN_AN_ENVELOPE, book


def test_maps_extend_one_another_and_files_stand_beside_folders(tmp_path):
    one = "format: house.base\nextends: vllm.chat\nprovider: house\n"
    two = tmp_path / "two.yml"
    two.write_text("format: house.more\nextends: house.base\ntitle: more\n")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "one.yaml").write_text(one)
    maps = MapBook([folder, two])
    assert maps.get("house.more").provider == "house"
    assert maps.get("house.more").tokens == get_map("vllm.chat").tokens
    assert {"house.base", "house.more", "openai.chat"} <= set(maps.formats)


def test_a_folder_is_one_of_maps_or_one_that_configuration_names(tmp_path):
    """`report --maps` and `maps: {folders: […]}` mean the same folder."""
    (tmp_path / "usage").mkdir()
    (tmp_path / "usage" / "shop.yml").write_text("format: shop.llm\nusage_from: openai.chat\n")
    for folder in (tmp_path, tmp_path / "usage"):
        assert "shop.llm" in MapBook([folder]).formats


def test_a_format_that_nobody_knows_says_what_looks_like_it():
    with pytest.raises(UnknownFormatError, match="did you mean openai"):
        get_map("openai.chatt")
    with pytest.raises(UnknownFormatError, match="usage formats"):
        get_map("zzz")


def test_the_maps_of_the_documentation_work(tmp_path):
    page = (Path(__file__).parents[3] / "docs" / "USAGE_MAPS.md").read_text()
    texts = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    maps = book(tmp_path, *texts)
    (record,) = Intake(maps.get("shop.llm")).take([encode(IN_AN_ENVELOPE)], 0.0)
    assert counts(record) == (10, 4, None, 6, 1)
    line = {"id": "x", "tokens": {"in": 5, "out": 2, "hit": 90, "put": 5, "all": 102}}
    (record,) = Intake(maps.get("house.log")).take([encode(line)], 0.0)
    assert (counts(record), record.quality) == ((100, 90, 5, 5, 2), "ok")
