from __future__ import annotations

import pytest

from prefix_cache_exporter.engine.versions import Version, parse_version


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.9.2", Version((0, 9, 2))),
        ("v0.9.2", Version((0, 9, 2))),
        (" 0.10.0\n", Version((0, 10))),
        ("0.9.0.1", Version((0, 9, 0, 1))),
        ("0.12.0+cpu", Version((0, 12))),
        ("0.12.0+cu128", Version((0, 12))),
        ("0.8.5.post1", Version((0, 8, 5), post=1)),
        ("0.11.0rc2", Version((0, 11), unfinished=True)),
        ("0.11.0rc2.dev15+g1a2b3c4", Version((0, 11), unfinished=True)),
        ("0.32.1.dev7+gabc", Version((0, 32, 1), unfinished=True)),
        ("0.32.1.dev7+gabc.d20260101", Version((0, 32, 1), unfinished=True)),
        ("0.1.dev9000+gabc", Version((0, 1), unfinished=True)),
        ("0.9.2.post1.dev3", Version((0, 9, 2), post=1, unfinished=True)),
    ],
)
def test_versions_as_they_are_written(text, expected):
    assert parse_version(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "dev",
        "nightly",
        "0.9.2-cuda!",
        "0..1",
        "latest",
        "0.9.x",
        "\N{ARABIC-INDIC DIGIT NINE}.9.2",
        "1!0.9.2",
        "9" * 5000,
    ],
)
def test_what_is_no_version(text):
    assert parse_version(text) is None


def test_releases_stand_in_order():
    texts = ["0.7.3", "0.8.5", "0.8.5.post1", "0.9.0", "0.9.0.1", "0.9.1", "0.10.0", "0.33.0"]
    places = [parse_version(text).place for text in texts]
    assert places == sorted(places)
