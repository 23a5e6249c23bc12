"""Every folded map against what its release registers, in every dialect and release."""

from __future__ import annotations

from itertools import pairwise

import pytest

from prefix_cache_exporter.engine.apply import apply_page
from prefix_cache_exporter.engine.maps import load_maps
from prefix_cache_exporter.engine.records import MEASURES
from prefix_cache_exporter.engine.versions import parse_version
from support.vllm_pages import registered, releases, vllm_page

MAPS = load_maps()
PYTHON = [
    (release, dialect.name)
    for release in releases()
    for dialect in MAPS.resolve(release).dialects
    if dialect.name != "rust"
]
NEVER_REPORTED = {"v0": 3, "v1": 0}


def dialect_of(release, name):
    return next(dialect for dialect in MAPS.resolve(release).dialects if dialect.name == name)


def entries(release, dialect):
    flat = dialect_of(release, dialect)
    return [entry for entry in (*flat.entries.values(), *flat.evidence.values()) if not entry.withheld]


def test_the_facts_are_of_fifty_releases():
    assert len(releases()) == 50
    assert set(releases()) <= set(MAPS.releases)


@pytest.mark.parametrize(("release", "dialect"), PYTHON)
def test_what_a_map_names_exists_in_its_release(release, dialect):
    facts = registered(release, dialect)
    for entry in entries(release, dialect):
        for family in entry.families:
            fact = facts[family]
            assert fact.type == ("gauge" if entry.kind == "info" else entry.kind), family
            named = {entry.by, entry.label, *entry.where} - {None}
            assert named <= set(fact.labels), family
            assert bool(fact.gates) == bool(entry.gate), family
            assert all(entry.gate.lstrip("-") in gate for gate in fact.gates), family
            said = fact.help.lower()
            assert all(word in said for word in entry.says), family
            assert not any(word in said for word in entry.never_says), family


@pytest.mark.parametrize(("release", "dialect"), PYTHON)
def test_what_marks_a_release_is_there_and_what_cannot_be_is_not(release, dialect):
    facts, marks = registered(release, dialect), dialect_of(release, dialect).marks
    always = {family for family, fact in facts.items() if not fact.gates}
    assert set(marks.whole) <= always
    assert {family for group in marks.present.values() for family in group} <= always
    assert marks.absent.isdisjoint(facts)


@pytest.mark.parametrize("release", releases())
def test_every_release_has_its_engine_label_since_0_8_3(release):
    labelled = "engine" in registered(release)["vllm:prompt_tokens"].labels
    assert labelled == (parse_version(release).release >= (0, 8, 3))


@pytest.mark.parametrize(("release", "dialect"), PYTHON)
def test_a_whole_page_of_a_release_is_verified_as_its_own(release, dialect):
    answer = apply_page(MAPS, release, vllm_page(release, dialect=dialect)).as_json()
    assert (answer["state"], answer["dialect"], answer["reasons"]) == ("verified", dialect, [])


@pytest.mark.parametrize(("release", "dialect"), PYTHON)
def test_a_measure_has_a_value_or_a_reason(release, dialect):
    answer = apply_page(MAPS, release, vllm_page(release, dialect=dialect)).as_json()
    measures = set(answer["engines"]["0"]["measures"])
    assert measures.isdisjoint(answer["withheld"])
    assert measures | set(answer["withheld"]) == set(MEASURES)


@pytest.mark.parametrize(("older", "newer"), list(pairwise(releases())))
def test_a_page_of_the_release_before_is_told_where_a_family_tells(older, newer):
    """An excerpt of two families more than before, or one that is gone, makes a page another release's."""
    before, after = registered(older), registered(newer)
    dated = {f for group in dialect_of(newer, "v1").marks.present.values() for f in group}
    brought = {family for family in dated if family not in before}
    gone = {family for family in before if family in dialect_of(newer, "v1").marks.absent and not before[family].gates}
    says_otherwise = any(
        entry.says and family in before and not all(word in before[family].help.lower() for word in entry.says)
        for entry in entries(newer, "v1")
        for family in entry.families
    )
    answer = apply_page(MAPS, newer, vllm_page(older), dialect="v1").as_json()
    lacking = {name for entry in entries(newer, "v1") if not entry.gate for name in entry.families} - set(before)
    if len(brought) > 1 or gone or says_otherwise:
        assert answer["state"] == "mismatch"
        assert answer["engines"] == {}
    elif lacking or brought:
        assert answer["state"] == "mismatch"
        assert answer["engines"]
    else:
        assert answer["state"] == "verified"
    assert set(after) >= dated


def test_versions_have_no_gap_and_no_overlap():
    """The ranges of map files meet: each release is in the file that is the newest not above it."""
    starts = [parse_version(file).place for file in MAPS.files]
    assert starts == sorted(set(starts))
    for release in (*releases(), "0.8.5.post1"):
        home = MAPS.resolve(release).name.removeprefix("vllm/")
        assert MAPS.releases[release] == home
        assert MAPS.resolve(release).verified


def test_every_map_file_begins_a_range_at_a_release_that_was_read():
    assert all(file in MAPS.releases for file in MAPS.files)
