"""Conditions of caveats, where pages of real releases do not reach their edges."""

from __future__ import annotations

import pytest

from prefix_cache_exporter.engine.caveats import Evidence, holds
from prefix_cache_exporter.engine.records import Caveat


def active(when, increases=(), *, explained=0.0, before=0.0, in_flight=False, info=(), labels=(), ranks=("0",)):
    caveat = Caveat("x", "something", "over", (), when)
    return holds(
        caveat, Evidence(dict(increases), explained, before, in_flight, dict(info), frozenset(labels), list(ranks))
    )


EXCEEDS = {"sum": ["a", "b"], "over": ["c"]}


@pytest.mark.parametrize(
    ("increases", "expected"),
    [
        ({"a": 3, "b": 2, "c": 4}, True),
        ({"a": 2, "b": 2, "c": 4}, False),
        ({"a": 9, "c": 4}, False),
        ({"a": 9, "b": 9}, False),
    ],
)
def test_what_is_not_known_proves_nothing(increases, expected):
    assert active({"exceeds": EXCEEDS}, increases) == expected


@pytest.mark.parametrize(
    ("explained_by", "options", "expected"),
    [
        ("requests_in_flight", {"explained": 1}, False),
        ("requests_in_flight", {"explained": 0.5}, True),
        ("requests_still_in_flight", {"explained": 1}, True),
        ("requests_still_in_flight", {"explained": 1, "in_flight": True}, False),
        ("requests_in_flight_before", {"explained": 1}, True),
        ("requests_in_flight_before", {"before": 1}, False),
    ],
)
def test_what_explains_an_excess(explained_by, options, expected):
    needs = {**EXCEEDS, "explained_by": explained_by}
    assert active({"exceeds": needs}, {"a": 3, "b": 2, "c": 4}, **options) == expected


@pytest.mark.parametrize(
    ("increases", "expected"),
    [({"a": 9, "c": 10}, True), ({"a": 8, "c": 10}, False), ({"a": 0, "c": 0}, False), ({"a": 1}, False)],
)
def test_a_share(increases, expected):
    assert active({"share": {"sum": ["a"], "over": ["c"], "at_least": 0.9}}, increases) == expected


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        (["0"], False),
        (["0", "1"], False),
        (["1"], True),
        (["0", "2"], True),
        (["x"], False),
        ([], False),
        (["9" * 5000], False),
    ],
)
def test_ranks_that_are_missing(ranks, expected):
    assert active({"ranks_missing": True}, ranks=ranks) == expected


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        ({"blocks": "10", "size": "16", "tokens": "160"}, False),
        ({"blocks": "20", "size": "16", "tokens": "160"}, False),
        ({"blocks": "10", "size": "4", "tokens": "160"}, True),
        ({"blocks": "None", "size": "4", "tokens": "160"}, False),
        ({"size": "4", "tokens": "160"}, False),
        ({"blocks": "10", "size": "4", "tokens": "0"}, False),
    ],
)
def test_labels_that_disagree(info, expected):
    when = {"labels_disagree": {"product": ["blocks", "size"], "multiple_of": "tokens"}}
    assert active(when, info=info) == expected


def test_the_plain_ones():
    assert active({"always": True})
    assert not active({"unseen": True})
    assert active({"increased": "a"}, {"a": 1})
    assert not active({"increased": "a"}, {"a": 0})
    assert not active({"increased": "a"})
    assert active({"label": "pid"}, labels=["pid"])
    assert active({"info_label": {"any_of": ["x"], "beyond": ["None"]}}, info={"x": "4"})
    assert not active({"info_label": {"any_of": ["x"], "beyond": ["None"]}}, info={"x": "None"})


def test_an_excess_that_a_setting_explains():
    when = {"exceeds": {"sum": ["a"], "over": ["b"], "unless": {"cache": "off"}}}
    assert active(when, {"a": 2, "b": 1})
    assert active(when, {"a": 2, "b": 1}, info={"cache": "on"})
    assert not active(when, {"a": 2, "b": 1}, info={"cache": "off"})
