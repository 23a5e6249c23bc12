from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefix_cache_exporter.engine.reading import EngineKey, Group, Series
from prefix_cache_exporter.engine.restarts import GroupState, Start
from prefix_cache_exporter.engine.snapshot import Snapshot, SnapshotError

TEXT = st.text(max_size=5)
SERIES = st.builds(Series, TEXT, TEXT, TEXT, TEXT)
VALUES = st.dictionaries(SERIES, st.floats(0, 1e15), max_size=4)
MOMENTS = st.none() | st.floats(0, 1e10)
STATES = st.builds(
    GroupState,
    VALUES,
    VALUES,
    MOMENTS,
    st.sampled_from(["", "fell", "rose", "older", "back", "unstable", "renamed"]),
    st.none() | VALUES,
    st.integers(0, 9),
    st.none() | st.builds(Start, MOMENTS, MOMENTS),
)
GROUPS = st.builds(Group, TEXT, TEXT, st.lists(st.tuples(TEXT, TEXT), max_size=2).map(tuple))
KEYS = st.builds(EngineKey, TEXT, TEXT)
SNAPSHOTS = st.builds(
    Snapshot,
    st.dictionaries(TEXT, TEXT, max_size=3),
    st.dictionaries(GROUPS, STATES, max_size=3),
    st.dictionaries(KEYS, st.floats(0, 1e9) | st.just(math.inf), max_size=2),
    st.dictionaries(KEYS, st.frozensets(TEXT, max_size=2), max_size=2),
    st.booleans(),
    st.dictionaries(KEYS, st.dictionaries(TEXT, st.integers(0, 2**53), max_size=2), max_size=2),
)


@given(SNAPSHOTS)
def test_a_snapshot_comes_back_as_it_was(snapshot):
    encoded = snapshot.encode()
    assert Snapshot.decode(encoded) == snapshot
    assert json.loads(encoded)["format"] == 1


def test_a_snapshot_from_before_anything_was_carried_over_is_read():
    old = json.loads(Snapshot({"prompt_tokens": "x"}, {}).encode())
    del old["carried"]
    assert Snapshot.decode(json.dumps(old).encode()) == Snapshot({"prompt_tokens": "x"}, {})


def test_a_snapshot_from_before_processes_were_remembered_is_read():
    snapshot = Snapshot({}, {Group("0", "m", ()): GroupState({}, {}, 1000.0)})
    old = json.loads(snapshot.encode())
    del old["groups"][0]["youngest"]
    assert Snapshot.decode(json.dumps(old).encode()) == snapshot


@pytest.mark.parametrize(
    ("encoded", "message"),
    [
        (b"", "not a snapshot"),
        (b"[]", "not a snapshot"),
        (b"{}", "not a snapshot: 'format'"),
        (b'{"format": 2}', "format: got 2, expected 1"),
        (b'{"format": 1, "sources": {}, "groups": [{}]}', "not a snapshot: 'group'"),
    ],
)
def test_what_is_no_snapshot(encoded, message):
    with pytest.raises(SnapshotError) as caught:
        Snapshot.decode(encoded)
    assert message in str(caught.value)
