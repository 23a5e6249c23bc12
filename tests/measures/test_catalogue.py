from __future__ import annotations

import re

import pytest

from prefix_cache_exporter.measures import ENGINE, EXPORTER, FAMILIES, RATIOS, USAGE, Family, Ratio

EVERY = pytest.mark.parametrize("family", FAMILIES.values(), ids=lambda family: family.name)
RATIO = pytest.mark.parametrize("ratio", RATIOS, ids=lambda ratio: ratio.id)


def test_no_name_and_no_id_stands_twice() -> None:
    assert len(FAMILIES) == len(ENGINE) + len(USAGE) + len(EXPORTER)
    assert len({ratio.id for ratio in RATIOS}) == len(RATIOS)


@EVERY
def test_names_follow_the_exposition_habits(family: Family) -> None:
    assert re.fullmatch(r"prefix_cache_(engine|usage|release|exporter)_[a-z_]+[a-z]", family.name)
    assert not family.name.endswith(("_total", "_bucket", "_count", "_sum", "_created"))
    assert family.series_name == family.name + ("_total" if family.kind == "counter" else "")
    if family.unit == "seconds" and family.kind != "counter":
        assert family.name.endswith("_seconds")
    if family.kind == "info":
        assert family.name.endswith("info") or family.name.endswith("_in_force")


@EVERY
def test_every_family_says_in_a_sentence_what_it_is(family: Family) -> None:
    assert family.help.endswith(".")
    assert len(family.labels) == len(set(family.labels))
    assert not {"le", "quantile", "job", "instance", "cluster", "pod"} & set(family.labels)


@EVERY
def test_a_family_belongs_to_the_plane_its_name_says(family: Family) -> None:
    assert family.plane == family.name.split("_")[2]


@RATIO
def test_both_sides_of_a_ratio_are_counters_of_one_plane_with_the_same_release_labels(ratio: Ratio) -> None:
    plane = {"engine": ENGINE, "usage": USAGE}[ratio.plane]
    for id_ in (*ratio.numerator, *ratio.denominator):
        assert plane[id_].kind == "counter"
        assert plane[id_].labels[:5] == ("source", "provider", "model", "template", "template_revision")


@RATIO
def test_nothing_is_just_called_a_hit_rate(ratio: Ratio) -> None:
    assert "hit rate" not in f"{ratio.title} {ratio.counted} {ratio.left_out}".lower()
    assert ratio.counted
    assert ratio.left_out
