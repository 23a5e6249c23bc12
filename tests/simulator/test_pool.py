from __future__ import annotations

import pytest

from prefix_cache_exporter.simulator.pool import BlockPool


def pool(blocks: int | None = 5, *, unhashed_first: bool = True) -> BlockPool:
    return BlockPool(blocks, unhashed_first=unhashed_first)


def cached(made: BlockPool, *names: int) -> list[int]:
    """Blocks computed and let go again, one after the other."""
    blocks = made.allocate(len(names))
    made.publish(blocks, names)
    made.release(blocks)
    return blocks


def test_one_block_is_never_handed_out():
    made = pool(5)

    assert made.free == 4
    assert made.allocate(4) == [1, 2, 3, 4]
    assert made.free == 0
    assert made.usage == 1.0


def test_what_is_let_go_is_found_until_it_is_needed():
    made = pool(5)
    blocks = cached(made, 11, 12, 13)

    assert made.find([11, 12, 13, 14], 4) == blocks
    assert made.free == 4
    assert made.usage == 0.0


def test_a_lookup_ends_at_the_first_unknown_block_and_at_its_limit():
    made = pool(5)
    cached(made, 11, 12, 13)

    assert len(made.find([11, 99, 13], 3)) == 1
    assert len(made.find([11, 12, 13], 2)) == 2
    assert made.find([99], 1) == []


def test_the_tail_is_evicted_before_the_beginning():
    made = pool(4)
    cached(made, 11, 12, 13)

    made.allocate(1)

    assert len(made.find([11, 12, 13], 3)) == 2
    assert made.evictions == 1


def test_the_longest_unused_is_evicted_first():
    made = pool(4)
    cached(made, 11)
    cached(made, 21)
    cached(made, 31)
    made.hold(made.find([11], 1))
    made.release(made.find([11], 1))  # used again

    made.allocate(1)

    assert [bool(made.find([name], 1)) for name in (11, 21, 31)] == [True, False, True]


def test_a_held_block_is_not_evicted():
    made = pool(4)
    cached(made, 11, 12, 13)
    held = made.find([11, 12, 13], 3)
    assert made.idle(held) == 3

    made.hold(held)
    made.hold(held[:1])

    assert made.free == 0
    assert made.idle(held) == 0
    made.release(held)
    assert made.free == 2  # the first is still held by the other


@pytest.mark.parametrize(("unhashed_first", "next_block"), [(True, 2), (False, 3)])
def test_where_a_block_without_hash_goes(unhashed_first, next_block):
    made = pool(5, unhashed_first=unhashed_first)
    blocks = made.allocate(2)
    made.publish(blocks[:1], [11])
    made.release(blocks)

    assert made.allocate(1) == [next_block]


@pytest.mark.parametrize("unhashed_first", [True, False])
def test_worthless_blocks_queue_or_come_back_last_first(unhashed_first):
    made = pool(4, unhashed_first=unhashed_first)
    made.release(made.allocate(3))

    assert made.allocate(3) == [3, 2, 1]
    assert made.evictions == 0


def test_equal_blocks_stand_by_for_each_other():
    made = pool(4)
    elder, younger, youngest = made.allocate(1), made.allocate(1), made.allocate(1)
    for blocks in (elder, younger, youngest):
        made.publish(blocks, [11])
    assert made.find([11], 1) == elder

    made.release(younger)
    assert made.allocate(1) == younger  # its hash is gone with it; the eldest still answers
    assert made.find([11], 1) == elder

    made.release(elder)
    made.allocate(1)
    assert made.find([11], 1) == youngest

    made.release(youngest)
    made.allocate(1)
    assert made.find([11], 1) == []


def test_a_cache_without_limit_evicts_nothing():
    made = pool(None)
    for name in range(100):
        cached(made, name)

    assert made.free is None
    assert made.usage == 0.0
    assert made.evictions == 0
    assert all(made.find([name], 1) for name in range(100))


@pytest.mark.parametrize("blocks", [5, None])
def test_a_reset_forgets_everything_unless_blocks_are_held(blocks):
    made = pool(blocks)
    cached(made, 11, 12)
    held = made.find([11], 1)
    made.hold(held)
    assert not made.reset()
    assert made.find([11], 1)

    made.release(held)
    assert made.reset()
    assert made.find([11], 1) == []
    made.allocate(4)
    assert made.evictions == 0


def test_the_smallest_pool_has_no_usage():
    assert pool(1).usage == 0.0
