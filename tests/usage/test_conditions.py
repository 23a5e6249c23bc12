from __future__ import annotations

import pytest

from prefix_cache_exporter.usage.conditions import NEVER, parse_condition, parse_some

RECORD = {"status": "Success", "code": "404", "flag": True, "list": [], "null": None, "n": 1, "deep": {"x": 0}}


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ({"path": "$.status", "present": True}, True),
        ({"path": "$.null", "present": True}, False),
        ({"path": "$.null", "present": False}, True),
        ({"path": ["$.null", "$.deep"], "present": True}, True),
        ({"path": "$.status", "any_of": ["success"]}, True),
        ({"path": "$.status", "none_of": ["success"]}, False),
        ({"path": "$.status", "none_of": ["failed"]}, True),
        ({"path": "$.absent", "none_of": ["failed"]}, False),
        ({"path": "$.flag", "any_of": [True]}, True),
        ({"path": "$.n", "any_of": [True]}, False),
        ({"path": "$.deep", "any_of": ["x"]}, False),
        ({"path": "$.code", "at_least": 400}, True),
        ({"path": "$.n", "at_least": 2}, False),
        ({"path": "$.flag", "at_least": 0}, False),
        ({"path": "$.list", "at_least": 0}, False),
        ({"path": "$.list", "empty": True}, True),
        ({"path": "$.status", "empty": False}, True),
        ({"path": "$.status", "contains": "CCESS"}, True),
        ({"path": "$.n", "contains": "1"}, False),
        ({"path": "x", "any_of": [0]}, True),
        ({"all": [{"path": "$.n", "any_of": [1]}, {"path": "$.flag", "present": True}]}, True),
        ({"all": [{"path": "$.n", "any_of": [1]}, {"path": "$.null", "present": True}]}, False),
        ({"any": [{"path": "$.n", "any_of": [2]}, {"path": "$.flag", "present": True}]}, True),
    ],
)
def test_conditions(condition, holds):
    assert parse_condition(condition).holds(RECORD, RECORD["deep"]) is holds


def test_no_condition_never_holds():
    assert parse_some(None) is NEVER
    assert not NEVER.holds(RECORD, None)
