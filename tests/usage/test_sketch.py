from __future__ import annotations

import random
import statistics

import pytest

from prefix_cache_exporter.usage.sketch import REGISTERS, STANDARD_ERROR, Distinct, Window


def hashes(count: int, seed: int) -> list[int]:
    rng = random.Random(seed)
    return [rng.getrandbits(64) for _ in range(count)]


def test_few_are_counted_exactly():
    distinct = Distinct()
    for value in hashes(256, 1) * 3:
        distinct.add(value)
    assert distinct.estimate() == 256


@pytest.mark.parametrize("count", [300, 3_000, 5_000, 20_000, 60_000])
def test_the_stated_error_holds(count):
    errors = []
    for seed in range(12):
        distinct = Distinct()
        for value in hashes(count, seed):
            distinct.add(value)
        errors.append(distinct.estimate() / count - 1)
    assert REGISTERS == 2048
    assert pytest.approx(0.023, abs=0.001) == STANDARD_ERROR
    assert statistics.fmean(error**2 for error in errors) ** 0.5 < 1.35 * STANDARD_ERROR
    assert abs(statistics.fmean(errors)) < STANDARD_ERROR


@pytest.mark.parametrize(
    ("rank", "estimate"),
    [(0, 0), (54, float("inf"))],
    ids=["nothing seen", "every register at its limit: more than 64 bits tell apart"],
)
def test_the_ends_of_the_scale(rank, estimate):
    distinct = Distinct()
    distinct._few, distinct._registers = None, bytearray([rank] * REGISTERS)
    assert distinct.estimate() == estimate


@pytest.mark.parametrize(("left", "right"), [(10, 20), (10, 5000), (5000, 10), (5000, 6000), (200, 200)])
def test_what_two_have_seen_is_what_one_would_have(left, right):
    one, other, both = Distinct(), Distinct(), Distinct()
    for value in hashes(left, 1):
        one.add(value)
        both.add(value)
    for value in hashes(right, 2):
        other.add(value)
        both.add(value)
    one.update(other)
    assert one.estimate() == both.estimate()
    empty = Distinct()
    empty.update(Distinct())
    assert empty.estimate() == 0


def test_the_window_slides():
    window = Window(600)
    for second in range(0, 1200, 10):
        window.add(("r1",), second // 300, second, requests=2)  # another fingerprint every five minutes
    assert list(window.levels(1199)) == [(("r1",), 3, 140)]  # the last 600 s and the step before
    assert list(window.levels(1500)) == [(("r1",), 1, 60)]
    assert list(window.levels(2000)) == []


def test_a_timestamp_in_front_shows():
    window = Window(600)
    for number, value in enumerate(hashes(5000, 1)):
        window.add(("bad",), value, number / 10)
        window.add(("good",), 7, number / 10)
    found = {key: (distinct, requests) for key, distinct, requests in window.levels(500)}
    assert found["good",] == (1, 5000)
    assert found["bad",] == (pytest.approx(5000, rel=0.1), 5000)


def test_keys_are_bounded():
    window = Window(600, keys=2)
    for key in ("a", "b", "a", "c"):
        window.add((key,), 1, 0)
    assert [key for key, _, _ in window.levels(0)] == [("a",), ("c",)]
