from __future__ import annotations

import msgspec
import pytest

from prefix_cache_exporter.usage.record import Duplicate
from support.usage import counts
from support.usage_streams import chunk, feed, stream


def test_state_survives_a_kill_and_holds_no_id():
    intake = stream()
    secret = "chatcmpl-very-secret"
    feed(intake, chunk(secret), {**chunk(secret, 10, 5, 1), "choices": [{"finish_reason": "stop"}]})
    feed(intake, chunk("other-secret", 3, 0, 1, last=True))
    stored = intake.merger.changes()
    assert intake.merger.changes() == {}
    assert not any(b"secret" in payload for payload in stored.values())
    again = stream()
    again.merger.load(stored)
    assert feed(again, chunk("other-secret", 3, 0, 1, last=True)) == [Duplicate()]
    (record,) = feed(again, chunk(secret, 10, 5, 2, last=True))
    assert counts(record) == (10, 5, None, 5, 2)


def test_state_that_is_none_is_refused():
    with pytest.raises(msgspec.DecodeError):
        stream().merger.load({"merging": b"nonsense"})


def test_numbers_that_no_state_can_hold_do_not_stop_it_from_being_stored():
    intake = stream(keep_raw=True)
    usage = {"prompt_tokens": 10**400, "completion_tokens": -(2**63) - 1, "total_tokens": 2**62}
    assert feed(intake, {"id": "a", "choices": [{"delta": {}}], "usage": usage}) == []
    assert "merging" in intake.merger.changes()
    (quarantined,) = intake.settle(0.0, everything=True)
    assert quarantined.usage == {"total_tokens": 2**62}
