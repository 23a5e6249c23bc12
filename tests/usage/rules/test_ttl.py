from __future__ import annotations

import pytest

from prefix_cache_exporter.usage.rules.ttl import by_ttl


@pytest.mark.parametrize(
    ("write", "split", "expected"),
    [
        (None, None, ({}, False)),
        (0, None, ({}, False)),
        (0, {"5m": 0}, ({}, False)),
        (0, {"5m": 1}, ({}, True)),
        (10, None, ({"unknown": 10}, False)),
        (10, {"5m": 10, "1h": 0}, ({"5m": 10}, False)),
        (10, {"5m": 4}, ({"5m": 4, "unknown": 6}, False)),
        (10, {"unknown": 4}, ({"unknown": 10}, False)),
        (10, {"5m": 11}, ({}, True)),
    ],
)
def test_writes_by_time_to_live(write, split, expected):
    assert by_ttl(write, split) == expected
