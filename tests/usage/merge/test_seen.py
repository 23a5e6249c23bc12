from __future__ import annotations

from prefix_cache_exporter.usage.merge.seen import Seen


def test_the_memory_of_settled_requests_is_bounded_and_stored_in_segments():
    seen = Seen(5000, 4)
    keys = [number.to_bytes(4, "big") for number in range(13_000)]
    assert all(seen.add(key) for key in keys)
    assert not seen.add(keys[-1])
    assert 5000 <= len(seen) < 5000 + 2 * 4096
    assert keys[0] not in seen
    assert keys[-5000] in seen
    changes = seen.changes()
    assert changes["seen/0"] is None
    again = Seen(5000, 4)
    again.load({name: payload for name, payload in changes.items() if payload is not None})
    assert again.keys == seen.keys
    again.add(b"new!")
    assert list(again.changes()) == ["seen/3"]


def test_a_full_segment_is_not_written_again_after_a_restart():
    seen = Seen(5000, 4)
    for number in range(4095):
        seen.add(number.to_bytes(4, "big"))
    again = Seen(5000, 4)
    again.load(dict.fromkeys(["seen/0"], b"".join(n.to_bytes(4, "big") for n in range(4096))))
    again.add(b"new!")
    assert list(again.changes()) == ["seen/1"]
    several = [bytes([n, n, n, n]) for n in range(3)]
    again.keys.update(several)
    again.added(several)
    assert again.changes()["seen/1"] == b"new!" + b"".join(several)
