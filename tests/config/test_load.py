from __future__ import annotations

from pathlib import Path
from typing import get_args, get_type_hints

import pytest
import yaml
from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

from prefix_cache_exporter.config.load import load_config, parse_config
from prefix_cache_exporter.config.model import Config, ReleaseSpec
from prefix_cache_exporter.config.reference import render
from prefix_cache_exporter.config.shown import masked
from prefix_cache_exporter.documents import DocumentError, read_schema

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def test_nothing_is_needed():
    assert parse_config("") == Config()


def test_the_smallest_useful_file():
    [engine] = parse_config('engines: [{name: vllm, url: "http://127.0.0.1:8000"}]').engines
    assert (engine.name, engine.url, engine.provider, engine.poll_seconds) == (
        "vllm",
        "http://127.0.0.1:8000",
        "vllm",
        5,
    )


@pytest.mark.parametrize("file", sorted((HERE / "bad").glob("*.yml")), ids=lambda file: file.stem)
def test_one_file_per_mistake(file):
    """The first line of each file is the message, without the file's name."""
    with pytest.raises(DocumentError) as caught:
        load_config(file)
    expected = file.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
    assert str(caught.value) == f"{file}: {expected}"


def test_a_secret_in_an_address_is_not_in_the_message():
    for name in ("engine-url-password.yml", "engine-url-query.yml"):
        with pytest.raises(DocumentError) as caught:
            load_config(HERE / "bad" / name)
        assert "hunter2" not in str(caught.value)


def test_a_missing_file_is_named():
    with pytest.raises(
        DocumentError, match=r"^none\.yml: file: got no such file or directory, expected a readable file$"
    ):
        load_config("none.yml")


def test_relative_paths_start_at_the_files_folder(tmp_path):
    file = tmp_path / "config.yml"
    file.write_text(
        "state: {path: state.db}\n"
        "maps: {folders: [maps, /etc/maps]}\n"
        "usage: [{name: log, format: openai.chat, paths: ['-', 'logs/*.jsonl', /var/log/a.jsonl]}]\n"
    )
    config = load_config(file)
    assert config.state.path == tmp_path / "state.db"
    assert config.maps.folders == (tmp_path / "maps", Path("/etc/maps"))
    assert config.usage[0].paths == ("-", f"{tmp_path}/logs/*.jsonl", "/var/log/a.jsonl")


def test_one_label_bound_leaves_the_others():
    labels = parse_config("limits: {labels: {namespace: 7}}").limits.labels
    assert (labels["namespace"], labels["model"]) == (7, 50)


def test_an_empty_section_is_like_none():
    assert parse_config("web:\nengines:\nprices: {files: null}\n") == Config()


def test_an_empty_release_is_no_release():
    assert not ReleaseSpec()
    assert ReleaseSpec(template="support")
    assert ReleaseSpec(cold_window_seconds=0)


def test_the_shown_configuration_is_a_configuration():
    config = load_config(ROOT / "example.yml")
    assert parse_config(masked(config)) == config


def test_the_shown_configuration_masks_what_slipped_in():
    config = parse_config("web: {external_url: 'https://me:hunter2@proxy.example/x'}")
    assert "external_url: https://<masked>@proxy.example/x" in masked(config)


def test_the_tour_tours_every_option():
    tour = yaml.safe_load((ROOT / "example.yml").read_text(encoding="utf-8"))
    assert _options(read_schema("config"), read_schema("config")) == _set_anywhere(tour)


def test_defaults_are_the_same_in_schema_and_program():
    _compare(Config, read_schema("config"), read_schema("config"))


def test_the_reference_is_written_from_the_schema():
    written = (ROOT / "docs" / "CONFIGURATION.md").read_text(encoding="utf-8")
    assert written == render(read_schema("config")), "run `make generate`"


def _resolved(option, schema):
    return {**schema["$defs"][option["$ref"].rpartition("/")[2]], **option} if "$ref" in option else option


def _options(section, schema):
    found = set()
    for key, raw in section.get("properties", {}).items():
        option = _resolved(raw, schema)
        found.add(key)
        found |= _options(_resolved(option.get("items", option), schema), schema)
    return found


def _set_anywhere(data):
    free = {"labels", "models"}  # their keys are the user's
    if isinstance(data, list):
        return set().union(*map(_set_anywhere, data))
    if not isinstance(data, dict):
        return set()
    return set(data).union(*(_set_anywhere(value) for key, value in data.items() if key not in free))


def _compare(kind, section, schema):
    hints = get_type_hints(kind)
    options = section["properties"]
    configured = [entry for entry in fields(kind) if entry.name != "origin"]  # where it came from is no option
    assert [entry.name for entry in configured] == list(options)
    for entry in configured:
        option = _resolved(options[entry.name], schema)
        nested = _resolved(option.get("items", option), schema)
        record = next(
            (
                one
                for one in (hints[entry.name], *get_args(hints[entry.name]))
                if isinstance(one, type) and issubclass(one, Struct)
            ),
            None,
        )
        if record is not None:
            _compare(record, nested, schema)
        elif entry.name not in section.get("required", ()):
            default = entry.default if entry.default_factory is NODEFAULT else entry.default_factory()
            default = list(default) if isinstance(default, tuple) else default
            default = dict(default) if hasattr(default, "items") else default
            assert default == option.get("default"), entry.name
