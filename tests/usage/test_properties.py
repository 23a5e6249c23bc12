"""What holds of any input whatever."""

from __future__ import annotations

import json
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from prefix_cache_exporter.usage.intake import Intake
from prefix_cache_exporter.usage.maps.book import shipped_maps
from prefix_cache_exporter.usage.record import QUALITIES, STATUSES, TTLS, UsageRecord

FORMATS = shipped_maps().formats
LANES = [name for name in FORMATS if Intake(shipped_maps().get(name)).lane is not None]
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 3000),
    st.integers(min_value=-(10**40), max_value=10**40),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(
        ["", "-", "12", "x", "True", "success", "failed", "{}", '{"cached_tokens": 3}', "k=3)", "2026-03-02T00:00:00Z"]
    ),
    st.text(max_size=5),
)


@cache
def keys(name):
    """Every key that a format's paths name, and the objects that they stand in."""
    usage_map = shipped_maps().get(name)
    paths = [path for paths in usage_map.tokens.values() for path in paths]
    paths += [path for paths in usage_map.write_by_ttl.values() for path in paths]
    paths += [
        *usage_map.usage,
        *usage_map.id,
        *usage_map.model,
        *usage_map.time,
        *usage_map.provider_paths,
        *usage_map.each,
    ]
    paths += [path for rule in usage_map.status for path in rule.paths]
    return sorted(
        {step for path in paths for step in path.steps if isinstance(step, str)} | {"type", "error", "choices"}
    )


@cache
def lines(name):
    """Objects made of a format's own keys, at any place."""
    values = st.one_of(SCALARS, st.integers(0, 3000))
    return st.recursive(
        st.dictionaries(st.sampled_from(keys(name)), values, max_size=8),
        lambda inner: st.dictionaries(
            st.sampled_from(keys(name)), st.one_of(inner, values, st.lists(inner, max_size=2)), max_size=8
        ),
        max_leaves=6,
    )


@cache
def plausible(name):
    """Lines whose numbers mostly stand where the format wants them."""
    usage_map = shipped_maps().get(name)
    wanted = [path for paths in (*usage_map.tokens.values(), *usage_map.write_by_ttl.values()) for path in paths]
    others = [
        *usage_map.id,
        *usage_map.model,
        *usage_map.time,
        *(path for rule in usage_map.status for path in rule.paths),
    ]
    numbers = st.one_of(st.integers(0, 60), st.sampled_from([None, 0, 100, 160]), SCALARS)

    @st.composite
    def build(draw):
        line: dict = {}
        root = usage_map.usage[0]
        for path in draw(st.lists(st.sampled_from(wanted), max_size=6, unique=True)):
            put(line, path if path.absolute else path.within(root), draw(numbers))
        for path in draw(st.lists(st.sampled_from(others or list(usage_map.usage)), max_size=3, unique=True)):
            put(line, path if path.absolute else path.within(root), draw(SCALARS))
        return line

    return build()


def put(line, path, value):
    """Sets what a path leads to, unless something else is in its way."""
    for step in path.steps[:-1]:
        if not isinstance(line, dict) or not isinstance(step, str):
            return
        line = line.setdefault(step, {})
    if isinstance(line, dict) and path.steps and isinstance(path.steps[-1], str):
        line[path.steps[-1]] = value


def check(record):
    assert record.quality in QUALITIES
    assert record.status in STATUSES
    counts = (
        record.total_input_tokens,
        record.cache_read_tokens,
        record.cache_write_tokens,
        record.uncached_input_tokens,
    )
    assert all(count is None or (type(count) is int and count >= 0) for count in (*counts, record.output_tokens))
    total, read, write, uncached = counts
    if None not in (total, read, uncached):
        assert uncached + read + (write or 0) == total
    if total is not None:
        assert (read or 0) + (write or 0) <= total
    assert set(record.cache_write_by_ttl) <= set(TTLS)
    if "ttl_split_mismatch" in record.anomalies:
        assert not record.cache_write_by_ttl
    else:
        assert sum(record.cache_write_by_ttl.values()) == (write or 0)
    for component in record.components:
        check(component)


@settings(max_examples=200, deadline=None)
@given(name=st.sampled_from(FORMATS), data=st.data())
def test_any_object_gives_sound_records(name, data):
    includes = data.draw(st.sampled_from([None, True, False]))
    intake = Intake(shipped_maps().get(name), input_includes_cache=includes, keep_raw=True)
    feed = data.draw(st.lists(st.one_of(lines(name), plausible(name)), max_size=4))
    found = intake.take([json.dumps(line).encode() for line in feed], 0.0, "f")
    for outcome in [*found, *intake.settle(0.0, everything=True)]:
        if isinstance(outcome, UsageRecord):
            check(outcome)


@settings(max_examples=100, deadline=None)
@given(line=st.one_of(st.binary(max_size=60), st.text(max_size=60).map(lambda text: text.encode("utf-8", "replace"))))
@pytest.mark.parametrize("name", ["openai.chat", "anthropic.messages.stream", "otel.span"])
def test_any_bytes_give_an_outcome(name, line):
    assert Intake(shipped_maps().get(name)).take([line], 0.0, "f") is not None


@settings(max_examples=250, deadline=None)
@given(name=st.sampled_from(LANES), data=st.data())
def test_the_fast_lane_says_what_the_general_way_says(name, data):
    feed = data.draw(st.lists(st.one_of(plausible(name), plausible(name), lines(name)), min_size=1, max_size=3))
    encoded = [json.dumps(line).encode() for line in feed]
    path = data.draw(st.sampled_from(keys(name)))
    options = {"fields": {"template": f"$.'{path}'"}, "models": {"x": "y"}}
    fast, slow = (Intake(shipped_maps().get(name), **options) for _ in range(2))
    assert fast.take(encoded, 0.0, "f") == [outcome for line in encoded for outcome in slow.slowly(line, 0.0, "f")]


@settings(max_examples=120, deadline=None)
@given(name=st.sampled_from(LANES), data=st.data())
def test_gathered_rows_are_the_same_records(name, data):
    feed = data.draw(st.lists(plausible(name), min_size=1, max_size=4))
    encoded = [json.dumps(line).encode() for line in feed]
    one, other = (Intake(shipped_maps().get(name), fields={"template": "$.template"}) for _ in range(2))
    groups, found = one.gather(encoded, 0.0, "f")
    for group in groups:
        for total, read, write, uncached, output, split, time, ttft, took in group.rows:
            found.append(
                replace(
                    group.sample,
                    total_input_tokens=total,
                    cache_read_tokens=read,
                    cache_write_tokens=write,
                    uncached_input_tokens=uncached,
                    output_tokens=output,
                    cache_write_by_ttl=split,
                    time=time,
                    ttft_seconds=ttft,
                    duration_seconds=took,
                )
            )
    nameless = [
        replace(item, id=None) if isinstance(item, UsageRecord) else item for item in other.take(encoded, 0.0, "f")
    ]
    found = [replace(item, id=None) if isinstance(item, UsageRecord) else item for item in found]
    assert sorted(map(repr, found)) == sorted(map(repr, nameless))
    assert one.merger.seen.keys == other.merger.seen.keys


STREAMS = [
    "openai.chat.stream",
    "anthropic.messages.stream",
    "claude_code.jsonl",
    "google.generate_content.stream",
    "codex.jsonl",
]


@settings(max_examples=80, deadline=None)
@given(name=st.sampled_from(STREAMS), data=st.data())
def test_a_kill_between_any_two_lines_changes_nothing(name, data):
    feed = data.draw(st.lists(st.one_of(plausible(name), lines(name)), max_size=8))
    encoded = [json.dumps(line).encode() for line in feed]
    kills = data.draw(st.sets(st.integers(0, 8)))
    usage_map = shipped_maps().get(name)
    whole = Intake(usage_map)
    expected = [*whole.take(encoded, 0.0, "f"), *whole.settle(0.0, everything=True)]
    stored: dict[str, bytes] = {}
    current, found = Intake(usage_map), []
    for number, line in enumerate(encoded):
        found += current.take([line], 0.0, "f")
        for part, payload in current.merger.changes().items():
            if payload is None:
                stored.pop(part, None)
            else:
                stored[part] = payload
        if number in kills:
            current = Intake(usage_map)
            current.merger.load(stored)
    found += current.settle(0.0, everything=True)
    strip = [replace(item, id=None) if isinstance(item, UsageRecord) else item for item in found]
    assert strip == [replace(item, id=None) if isinstance(item, UsageRecord) else item for item in expected]


@pytest.mark.parametrize(
    "line", [b"[" * 100_000, b'{"usage":' * 50_000 + b"1" + b"}" * 50_000, b"[" * 400 + b"]" * 400]
)
def test_deep_nesting_is_lost_and_raises_nothing(line):
    for outcome in Intake(shipped_maps().get("openai.chat")).take([line], 0.0):
        assert outcome.kind == "lost"


def test_a_number_of_many_digits_is_no_count():
    line = b'{"usage": {"prompt_tokens": ' + b"9" * 6000 + b"}}"
    (outcome,) = Intake(shipped_maps().get("openai.chat")).take([line], 0.0)
    assert not isinstance(outcome, UsageRecord)
