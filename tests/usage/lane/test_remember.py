from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from prefix_cache_exporter.usage.lane import remember
from prefix_cache_exporter.usage.lane.remember import Durable


def stored(memory: Durable, parts: dict[str, bytes] | None = None) -> dict[str, bytes]:
    """What the state file holds after a commit."""
    parts = dict(parts or {})
    for name, later in memory.changes().items():
        if later is None:
            parts.pop(name, None)
        else:
            parts[name] = later()
    return parts


def test_ids_are_known_within_a_process_and_after_it():
    memory = Durable(100, b"key")
    assert memory.add_all(["a", "b"])
    assert not memory.add_all(["c", "a"])
    assert not memory.add_all(["d", "d"])
    assert memory.add("c")
    assert not memory.add("a")
    parts = stored(memory)
    assert memory.changes() == {}
    again = Durable(100, b"key", {**parts, "seen/0": b"x", "ids/x": b"y", "merging": b"z"})
    assert not again.add("b")
    assert not again.add_all(["e", "c"])
    assert again.add_all(["e"])
    assert not Durable(100, b"key", stored(again, parts)).add("e")
    assert Durable(100, b"another key", parts).add("a")


def test_no_id_is_stored():
    memory = Durable(100)
    memory.add_all(["an id that nobody may read"])
    (content,) = stored(memory).values()
    assert content == hashlib.blake2b(b"an id that nobody may read", digest_size=12).digest()


def test_what_is_stored_is_what_was_known_when_it_was_handed_over():
    memory = Durable(100)
    memory.add("a")
    (later,) = memory.changes().values()
    memory.add("b")
    assert len(later()) == 12


def test_dropped_ids_are_new_again(monkeypatch):
    monkeypatch.setattr(remember, "_SEGMENT", 4)
    memory = Durable(100)
    memory.add_all(list("abcdefg"))
    memory.drop(["b", "f", "never there"])
    memory.drop([])
    assert not memory.add("a")
    assert memory.add_all(["b", "f"])
    assert len(b"".join(stored(memory).values())) == 12 * 7


@given(st.lists(st.lists(st.integers(0, 60), max_size=12, unique=True), max_size=20), st.integers(1, 30))
def test_the_last_ids_are_remembered_and_memory_is_bounded(batches, bound):
    remember._SEGMENT, before = 4, remember._SEGMENT
    try:
        memory, parts, order = Durable(bound), {}, []
        for number, batch in enumerate(batches):
            fresh = [str(one) for one in batch if memory.add(str(one))]
            order += fresh
            parts = stored(memory, parts)
            last = order[-bound:]
            assert not any(memory.add(one) for one in last)
            assert len(memory._young) + len(memory._old) <= 2 * (bound + 4 + 12)
            assert len(memory._known) <= bound + 3 * 4
            assert sum(len(content) for content in parts.values()) <= 12 * (bound + 4 * 4)
            if number % 3 == 2:
                memory = Durable(bound, saved=parts)
    finally:
        remember._SEGMENT = before
