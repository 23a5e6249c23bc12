"""Map files: read strictly, folded by version, replaced by the user's own."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from prefix_cache_exporter.documents import DocumentError, data_root, load_yaml
from prefix_cache_exporter.engine.caveats import CONDITIONS
from prefix_cache_exporter.engine.maps import MapSet, check_map, load_maps
from prefix_cache_exporter.engine.records import MEASURES

MAPS = load_maps()
FILES = sorted((data_root() / "vllm").glob("*.yaml"))
DIGESTS = Path(__file__).parents[1] / "facts" / "vllm_map_digests.json"
LINK = "https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/v1/metrics/loggers.py#L1"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_shipped_files_hold_against_the_schema(path):
    check_map(load_yaml(path), str(path))
    assert path.read_text().startswith("# yaml-language-server: $schema=../schema/vllm.schema.json\n")


def test_released_map_files_do_not_change_unnoticed():
    found = {path.stem: hashlib.sha256(path.read_bytes()).hexdigest() for path in FILES}
    pinned = json.loads(DIGESTS.read_text())
    changed = sorted(name for name in found.keys() | pinned.keys() if found.get(name) != pinned.get(name))
    assert not changed, (
        f"map files changed: {', '.join(changed)}. A released map decides what people's counters mean: prefer a new "
        f"file for a new release. If the change corrects a fact, say so in CHANGELOG.md under map changes, then set "
        f"the digest in {DIGESTS.name} to the file's sha256."
    )


@pytest.mark.parametrize(
    ("version", "name", "verified"),
    [
        ("0.7.3", "vllm/0.7.3", True),
        ("0.8.5.post1", "vllm/0.8.4", True),
        ("0.9.0.1", "vllm/0.9.0", True),
        ("0.12.0+cpu", "vllm/0.12.0", True),
        ("v0.28.0", "vllm/0.27.0", True),
        ("0.33.0", "vllm/0.33.0", True),
        ("0.14.2", "vllm/0.13.0", False),
        ("0.10.1.post3", "vllm/0.10.0", False),
        ("0.11.0rc2", "vllm/0.11.0", False),
        ("0.32.1.dev7+gabc", "vllm/0.32.0", False),
        ("0.33.0.dev1", "vllm/0.33.0", False),
        ("0.34.0", "vllm/0.33.0", False),
        ("1.2.3", "vllm/0.33.0", False),
    ],
)
def test_a_version_gets_the_newest_map_that_is_not_newer(version, name, verified):
    found = MAPS.resolve(version)
    assert (found.version, found.name, found.verified) == (version, name, verified)
    assert MAPS.resolve(version) is found


@pytest.mark.parametrize("version", [None, "", "0.7.2", "0.6.6.post1", "0.1.dev9000+gabc", "nightly"])
def test_what_is_older_or_no_version_is_unknown(version):
    assert MAPS.resolve(version) is None


@pytest.mark.parametrize(
    ("version", "dialects"),
    [
        ("0.7.3", ["v0", "v1"]),
        ("0.10.2", ["v0", "v1"]),
        ("0.11.0", ["v1"]),
        ("0.21.0", ["v1"]),
        ("0.22.0", ["v1", "rust"]),
        ("0.33.0", ["v1", "rust"]),
    ],
)
def test_dialects_come_and_go(version, dialects):
    assert [dialect.name for dialect in MAPS.resolve(version).dialects] == dialects


def test_a_dialect_that_extends_another_says_only_what_differs():
    v1, rust = MAPS.resolve("0.26.0").dialects
    assert rust.entries["prompt_tokens"] is not v1.entries["prompt_tokens"]
    assert rust.entries["prompt_tokens"].families == v1.entries["prompt_tokens"].families
    assert rust.entries["block_size_tokens"].withheld == "not_exposed"
    assert set(rust.caveats) == set(v1.caveats)
    assert (rust.lazy, rust.verified, rust.start) == (True, False, None)


def minimal(version="0.34.0", **parts):
    lines = [f"version: {version}", f"verified: [{version}]"]
    return "\n".join([*lines, *(f"{key}: {json.dumps(value)}" for key, value in parts.items())]) + "\n"


def entry(**changes):
    values = {"family": "vllm:new_name", "kind": "counter", "unit": "tokens", "source": LINK}
    return {"dialects": {"v1": {"measures": {"lookup_tokens": {**values, **changes}}}}}


def test_a_users_folder_adds_a_release(tmp_path):
    (tmp_path / "0.34.0.yaml").write_text(minimal(**entry()))
    (tmp_path / "notes.txt").write_text("not a map")
    maps = load_maps([tmp_path])
    found = maps.resolve("0.34.0")
    assert (found.name, found.verified) == ("vllm/0.34.0", True)
    v1 = next(dialect for dialect in found.dialects if dialect.name == "v1")
    assert v1.entries["lookup_tokens"].families == ("vllm:new_name",)
    assert v1.entries["prompt_tokens"].families == ("vllm:prompt_tokens",)
    assert maps.resolve("0.33.0").name == "vllm/0.33.0"


def test_a_release_that_changes_nothing_needs_one_line(tmp_path):
    content = (data_root() / "vllm" / "0.33.0.yaml").read_text()
    (tmp_path / "0.33.0.yaml").write_text(content.replace("verified: [0.33.0]", "verified: [0.33.0, 0.34.0]"))
    assert load_maps([tmp_path]).resolve("0.34.0").verified


BAD = {
    "no version": ("verified: []\n", "document: got no version, expected the key version"),
    "not a release": (
        minimal().replace("verified: [0.34.0]", "verified: [0.34.0rc1]"),
        'verified[0]: got "0.34.0rc1", expected a release like 0.9.2',
    ),
    "another file's version": (minimal("0.35.0"), "version: got 0.35.0, expected the file's name, 0.34.0"),
    "an unknown measure": (
        minimal(dialects={"v1": {"measures": {"hit_rate": None}}}),
        "dialects.v1.measures: got the unknown measure hit_rate, expected one of prompt_tokens,",
    ),
    "an unknown key": (minimal(**entry(colour="red")), "got the unknown key colour, expected one of"),
    "no source": (
        minimal(dialects={"v1": {"measures": {"lookup_tokens": {"withheld": "gone"}}}}),
        "dialects.v1.measures.lookup_tokens: got no source, expected the key source",
    ),
    "an unknown condition": (
        minimal(
            dialects={
                "v1": {
                    "caveats": {
                        "odd": {
                            "counts": "something is odd",
                            "errs": "over",
                            "affects": [],
                            "when": {"full_moon": True},
                            "source": [LINK],
                        }
                    }
                }
            }
        ),
        "dialects.v1.caveats.odd.when: got the unknown key full_moon, expected one of always,",
    ),
    "a key twice": (minimal() + "version: 0.34.0\n", "got the key version twice"),
    "a release of another map": (
        minimal().replace("verified: [0.34.0]", "verified: [0.34.0, 0.33.5]"),
        "verified[1]: got 0.33.5, expected a release between this map's version and the next one's",
    ),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD.keys())
def test_a_bad_file_is_one_line(tmp_path, text, message):
    path = tmp_path / "0.34.0.yaml"
    path.write_text(text)
    with pytest.raises(DocumentError) as caught:
        load_maps([tmp_path])
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_one_release_in_two_maps_is_refused():
    document = {"version": "0.9.0", "verified": ["0.9.0", "0.9"]}
    with pytest.raises(DocumentError, match=r"x: verified\[1\]: got 0.9, expected each release in one map"):
        MapSet([("x", document)])


def test_a_map_that_is_not_of_a_release_is_refused():
    with pytest.raises(DocumentError, match=r"x: version: got 0\.9\.0rc1, expected a release like 0\.9\.2"):
        MapSet([("x", {"version": "0.9.0rc1", "verified": []})])


def test_a_folder_and_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(DocumentError, match="folder: got no such file or directory, expected a folder"):
        load_maps([tmp_path / "nowhere"])
    (tmp_path / "0.34.0.yaml").mkdir()
    with pytest.raises(DocumentError, match="file: got is a directory, expected a readable file"):
        load_maps([tmp_path])


def test_every_caveat_names_measures_and_conditions_that_exist():
    for file in MAPS.files:
        for dialect in MAPS.resolve(file).dialects:
            known = {*MEASURES, *dialect.evidence}
            for caveat in dialect.caveats.values():
                ((kind, needs),) = caveat.when.items()
                assert kind in CONDITIONS
                named = needs["sum"] + needs["over"] if kind in ("exceeds", "share") else []
                assert {*caveat.affects, *caveat.invalidates, *named} <= known, (file, caveat.id)
                assert kind != "increased" or needs in known, (file, caveat.id)


def test_every_released_fact_has_a_permalink():
    for file in MAPS.files:
        for dialect in MAPS.resolve(file).dialects:
            sources = [entry.source for entry in (*dialect.entries.values(), *dialect.evidence.values())]
            sources += [link for caveat in dialect.caveats.values() for link in caveat.source]
            assert all(source.startswith("https://github.com/") for source in sources)
            assert all("/blob/main/" not in source for source in sources)


@pytest.mark.parametrize(
    ("version", "kept"),
    [
        ("0.27.0", False),
        ("0.27.0rc1", True),
        ("0.27.0.dev40+gabc", True),
        ("0.28.0.dev1", False),
        ("0.27.0.post1", False),
    ],
)
def test_a_build_that_leads_to_a_release_may_still_have_what_the_release_mends(version, kept):
    """Look-ups count once from 0.27.0 on: https://github.com/vllm-project/vllm/pull/48860."""
    v1 = MAPS.resolve(version).dialects[0]
    assert ("lookups_exceed_prompt_tokens" in v1.caveats) == kept
    assert "lookups_exceed_prompt_tokens" not in MAPS.resolve("0.27.0").dialects[0].caveats


def test_what_was_always_true_of_a_release_is_not_said_of_the_next_ones_builds():
    v1 = MAPS.resolve("0.9.0rc1").dialects[-1]
    assert "whole_blocks_only" not in v1.caveats
    assert "preemption_recount" in MAPS.resolve("0.11.1rc1").dialects[-1].caveats
