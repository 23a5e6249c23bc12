from __future__ import annotations

import pytest

from prefix_cache_exporter.usage.paths import MISSING, PathError, parse_path

LINE = {"a": {"b": [{"c": 1}, {"c": None}], "d.e": 2, "it's": 3, 'a"b': 4}, "x y": 5}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("$", LINE),
        ("$.a.b[0].c", 1),
        ("$.a.b[-1].c", None),
        ("$.a.b[2].c", MISSING),
        ("$.a.'d.e'", 2),
        ('$.a["d.e"]', 2),
        ("$.a['d.e']", 2),
        ('$.a."d.e"', 2),
        (r"$.a.'it\'s'", 3),
        ("$['x y']", 5),
        ("a.b[1].c", None),
        ("'x y'", 5),
        ("a.nothing.c", MISSING),
        ("a[0]", MISSING),
        ("a.b.c", MISSING),
        ("'x y'.deeper", MISSING),
    ],
)
def test_a_path_leads_to_a_value_null_or_nothing(text, value):
    assert parse_path(text).get(LINE) == value
    assert parse_path(str(parse_path(text))) == parse_path(text)


def test_every_item_of_a_list():
    assert list(parse_path("$.a.b[*].c").each(LINE)) == [1]
    assert list(parse_path("$.a.b[*]").each(LINE)) == [{"c": 1}, {"c": None}]
    assert list(parse_path("$.a[*]").each(LINE)) == []
    assert str(parse_path("$.a[*]")) == "$.a[*]"
    assert repr(parse_path("$[*]").steps) == "(*,)"


def test_a_path_moves_below_another():
    assert str(parse_path("$.usage").within(parse_path("$.response.body"))) == "$.response.body.usage"


@pytest.mark.parametrize(
    ("text", "position"), [("", 0), (".a", 0), ("$a", 1), ("$.a.", 3), ("$.a[x]", 3), ("$..a", 1), ("$.'open", 1)]
)
def test_what_is_no_path_says_where(text, position):
    with pytest.raises(PathError) as raised:
        parse_path(text)
    assert (raised.value.path, raised.value.position) == (text, position)
    assert f"at {position}, expected .key" in str(raised.value)
