"""Restarts of one group of counters, by start times where there are any, else by what follows a fall."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefix_cache_exporter.engine.reading import Series
from prefix_cache_exporter.engine.restarts import GroupState, step

PROMPT, HITS = Series("prompt_tokens", "f", "", ""), Series("lookup_hit_tokens", "g", "", "")


def state(value, started=None, created=None, **kept):
    return GroupState({PROMPT: value}, {} if created is None else {PROMPT: created}, started, **kept)


def follow(values, **options):
    """Takes a group through values that no start time explains."""
    last, steps = state(values[0]), []
    for value in values[1:]:
        steps.append(step(last, state(value), fall_restarts=False, **options))
        last = steps[-1].state
    return steps


@pytest.mark.parametrize(
    ("last", "now", "restarted", "unstable", "since"),
    [
        (state(10, 1000), state(20, 1000), False, False, {PROMPT: 10}),
        (state(10, 1000), state(20, 1000.4), False, False, {PROMPT: 10}),
        (state(10, 1000), state(20, 1010), True, False, {}),
        (state(10, 1000), state(20, 990), False, True, None),
        (state(10, 1000, 1500), state(20, 1000, 1700), True, False, {}),
        (state(10, None, 1500), state(20, None, 1500), False, False, {PROMPT: 10}),
        (state(10, 1000), state(20), False, False, {PROMPT: 10}),
        (state(10), state(20, 1000), False, False, {PROMPT: 10}),
        (state(10), state(5), False, False, None),
    ],
)
def test_one_step(last, now, restarted, unstable, since):
    taken = step(last, now, fall_restarts=False)
    assert (taken.restarted, taken.unstable, taken.since) == (restarted, unstable, since)


def test_a_fall_within_one_process_is_named():
    assert step(state(10, 1000), state(5, 1000), fall_restarts=True).fallen == {PROMPT}


def test_a_fall_may_be_a_restart_at_once():
    assert step(state(10), state(5), fall_restarts=True).restarted


def test_an_alternating_source_is_never_a_restart():
    steps = follow([9000, 2000, 9100, 2050, 9200, 2100])
    assert [taken.since for taken in steps] == [None] * 5
    assert [taken.unstable for taken in steps] == [False, False, True, True, True]
    assert not any(taken.restarted for taken in steps)


def test_a_source_that_calmed_down_is_believed_again():
    steps = follow([9000, 2000, 1000, 1100, 1200, 1300, 1400])
    assert [taken.unstable for taken in steps] == [False, True, True, True, False, False]
    assert [taken.since for taken in steps[3:]] == [None, None, {PROMPT: 1300}]


def test_a_fall_during_calm_begins_it_anew():
    steps = follow([9000, 2000, 1000, 1100, 900, 950, 960, 970])
    assert [taken.unstable for taken in steps] == [False, True, True, True, True, True, False]


def test_a_start_time_ends_all_doubt():
    doubtful = state(2000, doubt="fell", before={PROMPT: 9000})
    known = state(2000, 1000, doubt="fell", before={PROMPT: 9000})
    assert step(known, state(2500, 2000), fall_restarts=False).restarted
    assert step(doubtful, state(2500, 2000), fall_restarts=False).restarted
    assert step(known, state(2500, 1000), fall_restarts=False).since == {}


def test_a_series_that_is_new_does_not_hide_the_fall_of_another():
    last = GroupState({PROMPT: 10}, {})
    taken = step(last, GroupState({PROMPT: 5, HITS: 3}, {}), fall_restarts=False)
    assert taken.state.doubt == "fell"


@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=12))
def test_nothing_is_counted_negatively_or_twice(values):
    """What is counted never exceeds what all processes together may have counted."""
    last, counted = state(values[0]), 0
    for value in values[1:]:
        taken = step(last, state(value), fall_restarts=False)
        if taken.since is not None:
            amount = value - taken.since.get(PROMPT, 0)
            assert amount >= 0
            counted += amount
        last = taken.state
    assert counted <= sum(values[1:])


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=10))
def test_a_rising_counter_is_counted_exactly(increments):
    last, total, counted = state(5), 5, 0
    for increment in increments:
        total += increment
        taken = step(last, state(total), fall_restarts=False)
        counted += total - taken.since[PROMPT]
        last = taken.state
    assert counted == sum(increments)
