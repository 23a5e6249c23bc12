from __future__ import annotations

import json
import time

import pytest

from prefix_cache_exporter import measures
from prefix_cache_exporter.config.model import (
    Config,
    InventorySettings,
    MapSettings,
    Namespaces,
    PriceSettings,
    ReleaseSpec,
    UsageSource,
)
from prefix_cache_exporter.documents import DocumentError
from prefix_cache_exporter.labels import Limits
from prefix_cache_exporter.recorder import Recorder
from prefix_cache_exporter.release_board import ReleaseBoard
from prefix_cache_exporter.serve.usage_posts import usage_posts
from prefix_cache_exporter.state import Store
from support.logs import record

MAP = "format: shop\ntitle: the shop's gateway\nusage_from: openai.chat\nat: $.answer\nid: $.answer.id\n"
INVENTORY = (
    "segments: [{id: s, version: '1', owner: us, scope: all, sharing_group: all,"
    " expected_update_frequency: monthly, tokens: 8}]\n"
    "templates: {support: {shared_prefix: [s]}}\n"
)


def posts(recorder, config):
    return usage_posts(config, recorder, ReleaseBoard(recorder), lambda name: None)


def wants(recorder, asked):
    (post,) = posts(recorder, asked).values()
    return post.wants


def config(folder, **changes):
    source = {"name": "gw", "format": "shop", "paths": (str(folder / "*.log"),), **changes}
    release = ReleaseSpec(template="support", template_revision="r1")
    (folder / "usage").mkdir(exist_ok=True)
    (folder / "usage" / "shop.yaml").write_text(MAP)
    return Config(usage=(UsageSource(**source),), maps=MapSettings(folders=(folder,)), release=release)


def test_nothing_is_loaded_where_there_are_no_logs():
    assert posts(Recorder(Store(None), Limits()), Config()) == {}


def test_a_worker_reads_until_its_logs_are_quiet(tmp_path):
    recorder = Recorder(Store(None), Limits(), hold_seconds=0)
    (post,) = posts(recorder, config(tmp_path)).values()
    (tmp_path / "a.log").write_text(json.dumps({"answer": json.loads(record(1))}) + "\n")
    worker = post.hire()
    worker.start()
    deadline = time.monotonic() + 20
    while not worker.caught_up and time.monotonic() < deadline:
        time.sleep(0.01)
    assert worker.caught_up
    worker.drain()
    assert worker.join(20)
    recorder.commit()
    (one,) = [one for one in recorder.exposed() if one.family is measures.USAGE["requests"]]
    assert one.values[:5] == ("gw", "openai", "", "support", "r1")
    assert one.parts[""] == 1


def test_a_worker_is_replaced_when_a_file_behind_it_changes(tmp_path):
    recorder = Recorder(Store(None), Limits())
    (tmp_path / "inventory.yaml").write_text(INVENTORY)
    (tmp_path / "key").write_text("one")
    names = Namespaces(buckets=4, key_file=tmp_path / "key")
    asked = config(tmp_path, namespaces=names)
    asked = Config(usage=asked.usage, maps=asked.maps, inventory=InventorySettings(file=tmp_path / "inventory.yaml"))
    first, again = (wants(recorder, asked) for _ in range(2))
    assert first == again
    (tmp_path / "key").write_text("two")
    second = wants(recorder, asked)
    assert second != first
    (tmp_path / "inventory.yaml").write_text(INVENTORY + "# more\n")
    third = wants(recorder, asked)
    assert third != second
    (tmp_path / "usage" / "shop.yaml").write_text(MAP + "# more\n")
    assert wants(recorder, asked) != third


def test_a_format_that_no_map_describes(tmp_path):
    recorder = Recorder(Store(None), Limits())
    with pytest.raises(DocumentError, match=r"usage\[0\]\.format: got openai\.chatt, expected openai\.chat"):
        posts(recorder, config(tmp_path, format="openai.chatt"))
    with pytest.raises(DocumentError, match="got xyzzy, expected a format that a usage map describes"):
        posts(recorder, config(tmp_path, format="xyzzy"))


def test_prices_that_cannot_be_read(tmp_path):
    asked = config(tmp_path)
    asked = Config(usage=asked.usage, maps=asked.maps, prices=PriceSettings(files=(tmp_path / "missing.yaml",)))
    with pytest.raises(DocumentError, match=r"missing\.yaml: file"):
        posts(Recorder(Store(None), Limits()), asked)
