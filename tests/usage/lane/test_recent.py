from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefix_cache_exporter.usage.lane import compiled
from prefix_cache_exporter.usage.lane.recent import Recent

KINDS = [Recent, *([compiled.recent.Recent] if compiled.BUILT else [])]


@pytest.fixture(params=KINDS, ids=["python", "compiled"][: len(KINDS)])
def kind(request):
    return request.param


def test_recent_remembers_at_least_its_bound(kind):
    recent = kind(3)
    assert all(recent.add(number) for number in range(5))
    assert not recent.add(4)
    assert not recent.add(2)
    assert recent.add_all([10, 11])
    assert not recent.add_all([11, 12])
    assert not recent.add_all([13, 13])
    recent.drop({10})
    assert recent.add(10)
    assert not recent.add(11)


def test_a_block_with_repeats_leaves_the_memory_as_it_was(kind):
    recent = kind(100)
    assert recent.add_all([1, 2, 3])
    for _ in range(2):  # at first unprepared, then wary
        assert not recent.add_all([3, 4, 5])
        assert not recent.add_all([6, 6])
    assert [recent.add(number) for number in range(1, 7)] == [False, False, False, True, True, True]


def test_recent_forgets_what_is_long_ago(kind):
    recent = kind(3)
    assert recent.add_all(list(range(9)))
    assert [recent.add(number) for number in (8, 7, 6)] == [False] * 3
    assert recent.add(5)


def test_keys_come_as_numbers_or_as_a_block_of_them(kind):
    recent = kind(100)
    assert recent.hashes
    assert recent.add_all(memoryview(array("q", [0, -2, 2**63 - 1, -(2**63)])))
    assert not recent.add(-2)
    assert not recent.add_all([5, 0])
    assert recent.add(5)


def test_a_memory_grows_with_what_comes_up_to_three_times_its_bound(kind):
    recent = kind(5_000)
    for first in range(0, 14_000, 1_000):
        assert recent.add_all(range(first, first + 1_000))
    assert not any(recent.add(number) for number in range(14_000))
    assert recent.add_all(range(14_000, 15_000))  # with these it has three times as many
    assert not recent.add(10_000)
    assert recent.add(9_999)


# Few places of a table, so that keys stand in each other's way: 0 and those that differ by its length.
KEYS = st.one_of(st.integers(-3, 12), st.sampled_from([1024 * n + k for n in range(6) for k in (0, 1, 1023)]))
OPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), KEYS),
        st.tuples(st.just("add_all"), st.lists(KEYS, max_size=8)),
        st.tuples(st.just("drop"), st.lists(KEYS, max_size=4)),
    ),
    max_size=60,
)


@pytest.mark.skipif(not compiled.BUILT, reason="there was no compiler")
@given(st.integers(0, 9), OPS)
def test_both_kinds_remember_the_same(bound, ops):
    ours, theirs = Recent(bound), compiled.recent.Recent(bound)
    for name, given_ in ops:
        assert getattr(ours, name)(given_) == getattr(theirs, name)(given_), name
    for key in {key for _, given_ in ops for key in (given_ if isinstance(given_, list) else [given_])}:
        assert ours.add(key) == theirs.add(key)


@pytest.mark.skipif(not compiled.BUILT, reason="there was no compiler")
def test_the_compiled_memory_refuses_what_is_no_hash():
    recent = compiled.recent.Recent(3)
    for wrong, error in (("1", TypeError), (2**63, OverflowError), (None, TypeError)):
        for method, given_ in ((recent.add, wrong), (recent.add_all, [1, wrong]), (recent.drop, [wrong])):
            with pytest.raises(error):
                method(given_)
    with pytest.raises(TypeError):
        recent.add_all(7)
    with pytest.raises(TypeError):
        recent.drop(7)
    assert recent.add(1)
