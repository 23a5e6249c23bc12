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


def counts(values, **options):
    """What a group of one counter counts, reading by reading; None where it waits or does not know."""
    last, found = state(values[0], **options), []
    for value in values[1:]:
        taken = step(last, state(value, **options), fall_restarts=False)
        found.append(None if taken.since is None else value - taken.since.get(PROMPT, 0))
        last = taken.state
    return found


@pytest.mark.parametrize("options", [{}, {"started": 1000}, {"created": 1500}, {"started": 1000, "created": 1500}])
def test_an_older_page_is_not_counted_twice(options):
    """A cache on the way: a restart begins at 0, and what is above half of what it was has not begun anew."""
    assert counts([100, 300, 200, 400, 500], **options) == [200, None, 100, 100]
    assert counts([100, 300, 200, 250, 400, 500], **options) == [200, None, None, 150 - 50, 100]


def test_in_one_process_any_fall_is_an_older_page():
    assert counts([9000, 100, 9100], started=1000) == [None, 100]
    assert counts([9000, 100, 9100], created=1500) == [None, 100]


def test_two_caches_of_the_same_counters_are_counted_once():
    assert counts([100, 300, 200, 400, 300, 500, 400, 600], created=1500.25) == [200, None, 100, None, 100, None, 100]


def test_a_process_that_is_not_sure_to_be_the_same_is_unstable_when_it_falls_again():
    """Workers of one server start within a second; each answers with its own counters."""
    last, told = state(9000, 1000), []
    for value, started in [(100, 1000.4), (9100, 1000), (200, 1000.4), (9200, 1000), (300, 1000.4)]:
        taken = step(last, state(value, started), fall_restarts=False)
        told.append((taken.unstable, taken.since))
        last = taken.state
    assert told == [(False, None), (False, {PROMPT: 9000}), (True, None), (True, None), (True, None)]


def test_a_counter_that_is_made_anew_restarts_alone():
    """As where something on the way forgets a series for a while."""
    last = GroupState({PROMPT: 9000, HITS: 400}, {PROMPT: 1500.5, HITS: 1500.5}, 1000)
    now = GroupState({PROMPT: 9100, HITS: 30}, {PROMPT: 1500.5, HITS: 1800.5}, 1000)
    taken = step(last, now, fall_restarts=False)
    assert (taken.restarted, taken.fallen, taken.since) == (False, frozenset(), {PROMPT: 9000, HITS: 0})
    both = GroupState({PROMPT: 50, HITS: 30}, {PROMPT: 1800.5, HITS: 1800.5}, 1000)
    assert step(last, both, fall_restarts=False).restarted
    torn = GroupState({PROMPT: 9100, HITS: 30}, {PROMPT: 1400.5, HITS: 1800.5}, 1000)
    assert not step(last, torn, fall_restarts=False).restarted


def test_two_processes_that_answer_in_turn_are_counted_once_at_the_most():
    """The younger one may have taken the place of the older one, until that answers again."""
    last, told = state(9000, 1000), []
    for value, started in [(100, 1700), (9100, 1000), (200, 1700), (9200, 1000), (300, 1700), (400, 1700), (500, 1700)]:
        taken = step(last, state(value, started), fall_restarts=False)
        told.append((taken.restarted, taken.unstable))
        last = taken.state
    assert told == [(True, False), *[(False, True)] * 5, (False, True)]
    last = step(last, state(600, 1700), fall_restarts=False).state
    assert step(last, state(650, 1700), fall_restarts=False).since == {PROMPT: 600}
    assert step(last, state(650, 1800), fall_restarts=False).restarted


def test_a_living_process_whose_counters_stay_low_is_believed_again():
    assert counts([9000, 100, 150, 160, 170, 180, 190], started=1000) == [None, None, None, None, 10, 10]


def test_a_restart_while_pages_are_old():
    steps = follow([9000, 8000, 100, 150])
    assert [(taken.restarted, taken.since) for taken in steps] == [(False, None), (False, None), (True, {})]


def test_a_counter_that_slips_while_others_rise():
    """It is refused alone; if it comes right back, it goes on where it was."""
    rows = [(100, 10, 9), (60, 20, 19), (110, 30, 29), (120, 40, 39), (130, 50, 49)]
    last, told = None, []
    for prompt, hits, moment in rows:
        now = GroupState({PROMPT: prompt, HITS: hits}, {}, 1000 + moment / 1000)
        if last:
            taken = step(last, now, fall_restarts=False)
            told.append((taken.fallen, taken.since and (taken.since[PROMPT], taken.since[HITS])))
        last = taken.state if last else now
    assert told == [
        (frozenset({PROMPT}), (100, 10)),
        (frozenset(), (100, 20)),
        (frozenset(), (110, 30)),
        (frozenset(), (120, 40)),
    ]


def test_a_sum_of_seconds_may_be_rounded():
    """Processes' files are added in any order: https://github.com/prometheus/client_python/blob/v0.26.0/prometheus_client/multiprocess.py#L45"""
    seconds = Series("request_seconds", "f", "", "sum")
    last = GroupState({PROMPT: 10, seconds: 9.000000000000002}, {})
    taken = step(last, GroupState({PROMPT: 20, seconds: 9.0}, {}), fall_restarts=False)
    assert (taken.since, taken.state.values[seconds]) == (last.values, 9.000000000000002)
    assert step(last, GroupState({PROMPT: 20, seconds: 8.9}, {}), fall_restarts=False).fallen == {seconds}


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
