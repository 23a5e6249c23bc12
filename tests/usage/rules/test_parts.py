from __future__ import annotations

from support.usage import counts, settled


def iterations(*parts, **usage):
    numbers = {"input_tokens": 10, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0, "output_tokens": 1}
    return {"usage": {**numbers, "iterations": list(parts), **usage}}


def test_a_part_whose_numbers_are_none_is_not_added_and_not_passed_over():
    whole = {"type": "compaction", "input_tokens": 90, "cache_read_input_tokens": 5, "output_tokens": 2}
    (record,) = settled("anthropic.messages", iterations(whole, {"type": "compaction", "cache_read_input_tokens": 7}))
    assert (counts(record), record.quality, record.anomalies) == (
        (105, 5, 0, 100, 3),
        "anomaly",
        ("part_incomplete",),
    )
    (record,) = settled("anthropic.messages", iterations({"type": "compaction", "input_tokens": -1}))
    assert (counts(record), record.anomalies) == ((10, 0, 0, 10, 1), ("part_negative", "part_incomplete"))
    (record,) = settled("anthropic.messages", iterations(*[whole] * 100))
    assert counts(record) == (9510, 500, 0, 9010, 201)  # however many there are
