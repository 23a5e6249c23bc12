from __future__ import annotations

from prefix_cache_exporter.usage.lane.recent import Recent


def test_recent_remembers_at_least_its_bound():
    recent = Recent(3)
    assert all(recent.add(number) for number in range(5))
    assert not recent.add(4)
    assert not recent.add(2)
    assert recent.add_all([10, 11])
    assert not recent.add_all([11, 12])
    assert not recent.add_all([13, 13])
    recent.drop({10})
    assert recent.add(10)
    assert not recent.add(11)


def test_a_block_with_repeats_leaves_the_memory_as_it_was():
    recent = Recent(100)
    assert recent.add_all([1, 2, 3])
    for _ in range(2):  # at first unprepared, then wary
        assert not recent.add_all([3, 4, 5])
        assert not recent.add_all([6, 6])
    assert [recent.add(number) for number in range(1, 7)] == [False, False, False, True, True, True]


def test_recent_forgets_what_is_long_ago():
    recent = Recent(3)
    assert recent.add_all(list(range(9)))
    assert [recent.add(number) for number in (8, 7, 6)] == [False] * 3
    assert recent.add(5)
