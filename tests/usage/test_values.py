from __future__ import annotations

import math

import pytest

from prefix_cache_exporter.usage.values import duration, seconds_since_epoch, tokens, word


@pytest.mark.parametrize(
    ("value", "count"), [(0, 0), (12, 12), (12.0, 12), ("12", 12), (" 12.0 ", 12), ("+12", 12), (2**53, 2**53)]
)
def test_counts_of_tokens(value, count):
    assert tokens(value) == (count, None)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (True, "not_a_number"),
        (None, "not_a_number"),
        ({}, "not_a_number"),
        ("twelve", "not_a_number"),
        ("", "not_a_number"),
        (math.nan, "not_a_number"),
        (math.inf, "not_a_number"),
        (1.5, "not_whole"),
        ("1.5", "not_a_number"),
        (-1, "negative"),
        ("-1", "negative"),
        (2**53 + 1, "too_large"),
        (1e30, "too_large"),
    ],
)
def test_what_is_no_count_of_tokens(value, problem):
    assert tokens(value) == (None, problem)


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        (1790000000, 1790000000.0),
        (1790000000123, 1790000000.123),
        (1790000000123456, 1790000000.123456),
        ("1790000000000000000", 1790000000.0),
        ("2026-03-02T11:59:59Z", 1772452799.0),
        ("2026-03-02T19:59:59+08:00", 1772452799.0),
        ("2026-03-02 11:59:59", 1772452799.0),
        ("2026-03-02", 1772409600.0),
        ("2026-03-02t11:59:59z", 1772452799.0),
        ("2026-03-02 11:59:59 UTC", 1772452799.0),
        ("2026-03-02 11:59:59.5 +0000 UTC m=+3.2", 1772452799.5),
        ("2026-03-02 03:59:59 -0800 PST", 1772452799.0),
        ("Mon, 02 Mar 2026 11:59:59 GMT", 1772452799.0),
        ("[02/Mar/2026:19:59:59 +0800]", 1772452799.0),
        ("2026-03-02 19:59:59.5 +08:00", 1772452799.5),
        ("2026/03/02 11:59:59", 1772452799.0),
        ("2026/03/02 11:59:59.25", 1772452799.25),
        ("20260302", 1772409600.0),
        (" 20260302115959 ", 1772452799.0),
        (20260302115959, 1772452799.0),
        (20260302115959250, 1772452799.25),
        ("20260302115959250", 1772452799.25),
        ("20263302", 20263302.0),  # no day of the calendar
    ],
)
def test_moments(value, moment):
    assert seconds_since_epoch(value) == pytest.approx(moment)


@pytest.mark.parametrize(
    "value",
    [
        "soon",
        "3/2/2026, 7:59:00 PM",
        "2026-03-02 19:59:59 PM",
        "2026/13/02 19:59:59",
        "02/03/2026 19:59:59",
        "",
        0,
        -5,
        True,
        None,
        [],
        math.nan,
        1e30,
        "9" * 19 + "9",
        "0001-01-01T00:00:00+14:00",
    ],
)
def test_what_is_no_moment(value):
    assert seconds_since_epoch(value) is None or isinstance(value, str)
    assert seconds_since_epoch("0001-01-01") == pytest.approx(-62135596800.0)


@pytest.mark.parametrize(
    ("value", "unit", "seconds"),
    [
        (1500, "ms", 1.5),
        ("250", "ms", 0.25),
        (2, "s", 2.0),
        (3e6, "us", 3.0),
        (4_000_000_000, "ns", 4.0),
        (0, "s", 0.0),
    ],
)
def test_spans(value, unit, seconds):
    assert duration(value, unit) == pytest.approx(seconds)


@pytest.mark.parametrize("value", [-1, "x", None, True, math.inf, math.nan, 10**400, 1e308, 1e11, []])
def test_what_is_no_span(value):
    assert duration(value, "s") is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("gpt", "gpt"),
        ("", None),
        (5, "5"),
        (1.5, "1.5"),
        (True, "true"),
        (False, "false"),
        (None, None),
        ({}, None),
        ([], None),
    ],
)
def test_words(value, text):
    assert word(value) == text


def test_a_word_is_cut_before_it_fills_memory():
    assert word(10**5000) is None
    assert word("x" * 512) == "x" * 512
    front, long = "x" * 480, word("x" * 10_000)
    assert (len(long), long[:480]) == (512, front)
    assert len({long, word("x" * 9_999), word("x" * 9_999 + "y"), word("\ud83d" + "x" * 9_999), word(10**4000)}) == 5
