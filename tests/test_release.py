from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from prefix_cache_exporter.documents import DocumentError
from prefix_cache_exporter.release import (
    NOBODY_SAID,
    Release,
    ReleaseFile,
    credited,
    from_environment,
    parse_release_file,
)

if TYPE_CHECKING:
    from pathlib import Path

R1 = Release(template="support", template_revision="r1")
R2 = Release(template="support", template_revision="r2")
SALES = Release(template="sales", template_revision="r1")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (R1, R1, ("support", "r1")),
        (R1, R2, ("support", "mixed")),
        (R1, SALES, ("mixed", "mixed")),
        (NOBODY_SAID, R1, ("mixed", "mixed")),
        (NOBODY_SAID, NOBODY_SAID, ("", "")),
        (R1, Release("support", "r1", model_revision="m2"), ("support", "r1")),
    ],
)
def test_an_increase_is_credited_to_the_release_in_force_at_both_polls(
    before: Release, after: Release, expected: tuple[str, str]
) -> None:
    assert tuple(credited(before, after).values()) == expected


def test_one_release_as_yaml() -> None:
    content = b"""
template: support
template_revision: r42
tokenizer_revision: "7"
predicted_population_hit_ratio: 0.46
cold_window_seconds: 900
"""
    releases = parse_release_file(content, "release.yaml")
    expected = Release("support", "r42", "7", predicted_population_hit_ratio=0.46, cold_window_seconds=900.0)
    assert releases.in_force == expected
    assert releases.find("support", "r42") == expected
    assert releases.find("support", "r41") is None


def test_several_releases_with_one_in_force_as_json() -> None:
    content = b"""{"releases": [
        {"template": "support", "template_revision": "r42", "in_force": true},
        {"template": "sales", "template_revision": "r7", "cold_window_seconds": 60}]}"""
    releases = parse_release_file(content, "release.json")
    assert releases.in_force.labels == {"template": "support", "template_revision": "r42"}
    sales = releases.find("sales", "r7")
    assert sales is not None
    assert sales.cold_window_seconds == 60.0


def test_of_several_releases_without_a_choice_none_is_in_force() -> None:
    content = b"releases: [{template: a, template_revision: r1}, {template: b, template_revision: r1}]"
    assert parse_release_file(content, "f").in_force == NOBODY_SAID


def test_annotations_of_the_downward_api() -> None:
    content = rb"""kubernetes.io/config.seen="2026-11-29T10:00:00Z"
prefix-cache-exporter/template="support"
prefix-cache-exporter/template-revision="r42 \"beta\""
prefix-cache-exporter/cold-window-seconds="900"
"""
    assert parse_release_file(content, "annotations").in_force == Release(
        "support", 'r42 "beta"', cold_window_seconds=900.0
    )


def test_an_annotation_may_hold_whatever_go_can_quote() -> None:
    content = rb"""color="\x1b[1m \a \U000e0001 \ud800"
prefix-cache-exporter/template="sup\tport \u200b\\x41 \U0001f600"
prefix-cache-exporter/template-revision="r\x41"
"""
    assert parse_release_file(content, "annotations").in_force == Release("sup\tport \u200b\\x41 \U0001f600", "rA")


TWO_IN_FORCE = b"""
releases:
  - {template: a, template_revision: r, in_force: true}
  - {template: b, template_revision: r, in_force: true}
"""


def annotations(**values: str) -> bytes:
    return "\n".join(f'prefix-cache-exporter/{key.replace("_", "-")}="{text}"' for key, text in values.items()).encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "f: document: got nothing, expected a mapping"),
        (b"[a]", "f: document: got list, expected a mapping"),
        (b"template: support", "f: document: got no template_revision, expected the key template_revision"),
        (
            b"template: support\ntemplate_revision: 42",
            "f: template_revision: got 42, expected text of 1 to 200 characters (put numbers in quotes)",
        ),
        (
            b"template: s\ntemplate_revision: r\npredicted_population_hit_ratio: 46",
            "f: predicted_population_hit_ratio: got 46, expected at most 1",
        ),
        (
            b"releases: [{template: a, template_revision: r}, {template: a, template_revision: r}]",
            "f: releases[1]: got a/r a second time, expected each revision once",
        ),
        (
            TWO_IN_FORCE,
            "f: releases: got 2 releases in force, expected one in_force: true at the most",
        ),
        (b"releases: []", "f: releases: got [], expected at least 1 of it"),
        (
            annotations(template="a", template_revision="r", cold_window_seconds="soon"),
            'f: cold_window_seconds: got "soon", expected number',
        ),
        (
            annotations(template="a", template_revision="r", cold_window_seconds="inf"),
            "f: cold_window_seconds: got Infinity, expected a finite number",
        ),
        (
            b"releases: [{template: a, template_revision: r, predicted_population_hit_ratio: .nan}]",
            "f: releases[0].predicted_population_hit_ratio: got NaN, expected a finite number",
        ),
        (
            b"{template: a, template_revision: r, cold_window_seconds: 1" + b"0" * 400 + b"}",
            f"f: cold_window_seconds: got 1{'0' * 79}…, expected a finite number",
        ),
    ],
)
def test_one_line_says_what_is_wrong(content: bytes, message: str) -> None:
    with pytest.raises(DocumentError) as caught:
        parse_release_file(content, "f")
    assert str(caught.value) == message


def test_the_environment_names_a_release() -> None:
    environment = {
        "PREFIX_CACHE_RELEASE_TEMPLATE": "support",
        "PREFIX_CACHE_RELEASE_TEMPLATE_REVISION": "r42",
        "PREFIX_CACHE_RELEASE_COLD_WINDOW_SECONDS": "900",
        "PREFIX_CACHE_RELEASE_MODEL_REVISION": "",
        "PATH": "/bin",
    }
    releases = from_environment(environment)
    assert releases is not None
    assert releases.in_force == Release("support", "r42", cold_window_seconds=900.0)
    assert from_environment({"PATH": "/bin"}) is None
    with pytest.raises(DocumentError, match="environment: document: got the unknown key revision"):
        from_environment({**environment, "PREFIX_CACHE_RELEASE_REVISION": "r42"})


def kubernetes_update(folder: Path, version: str, text: str) -> None:
    """What a kubelet does: a new folder, then `..data` swapped in one rename."""
    (folder / version).mkdir()
    (folder / version / "release.yaml").write_text(text)
    (folder / "..next").symlink_to(version)
    (folder / "..next").rename(folder / "..data")
    if not (folder / "release.yaml").is_symlink():
        (folder / "release.yaml").symlink_to("..data/release.yaml")


def test_b37_a_symlink_swap_is_seen_and_a_bad_content_keeps_the_old(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kubernetes_update(tmp_path, "..2026_01", "template: support\ntemplate_revision: r1\n")
    file = ReleaseFile(tmp_path / "release.yaml")
    assert (file.look(), file.look()) == (True, False)
    kubernetes_update(tmp_path, "..2026_02", "template: support\ntemplate_revision: r2\n")
    assert (file.look(), file.releases.in_force.template_revision) == (True, "r2")

    kubernetes_update(tmp_path, "..2026_03", "template: support\ntemplate_revision: [\n")
    with caplog.at_level(logging.ERROR):
        assert [file.look(), file.look(), file.look()] == [False, False, False]
    assert (file.valid, file.releases.in_force.template_revision) == (False, "r2")
    assert len(caplog.records) == 1

    kubernetes_update(tmp_path, "..2026_04", "template: support\ntemplate_revision: r2\n")
    assert (file.look(), file.valid) == (False, True)  # the same release again, readable again
    assert (file.look(), file.valid) == (False, True)


def test_the_old_content_come_back_after_a_bad_one_is_valid_again(tmp_path: Path) -> None:
    path = tmp_path / "release.yaml"
    path.write_text("template: a\ntemplate_revision: r1\n")
    file = ReleaseFile(path)
    file.look()
    path.write_text("template: [")
    file.look()
    assert not file.valid
    path.write_text("template: a\ntemplate_revision: r1\n")
    file.look()
    assert file.valid


@pytest.mark.parametrize("size", [None, (1 << 20) + 1], ids=["missing", "too large"])
def test_a_file_that_cannot_be_read_keeps_the_old(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, size: int | None
) -> None:
    path = tmp_path / "release.yaml"
    if size:
        path.write_bytes(b"#" * size)
    file = ReleaseFile(path)
    assert (file.look(), file.valid, file.releases.in_force) == (False, False, NOBODY_SAID)
    assert "expected a re" in caplog.text
