from __future__ import annotations

import pytest

from prefix_cache_exporter.report.latency import ERROR, EXACT, Durations


def durations(values):
    found = Durations()
    for value in values:
        found.add(value)
    return found


@pytest.mark.parametrize(
    ("count", "quantile", "beyond", "supported"),
    [
        (19, 0.5, 9, False),
        (20, 0.5, 10, True),
        (199, 0.95, 9, False),
        (200, 0.95, 10, True),
        (999, 0.99, 9, False),
        (1000, 0.99, 10, True),
        (1, 0.5, 0, False),
    ],
)
def test_a_percentile_needs_ten_observations_beyond_it(count, quantile, beyond, supported):
    found = durations(range(1, count + 1)).percentile(quantile)
    assert (found.beyond, found.supported) == (beyond, supported)
    assert found.value == count - beyond


def test_nothing_has_no_percentile():
    found = Durations().percentile(0.99)
    assert (found.value, found.beyond, found.supported) == (None, 0, False)


@pytest.mark.parametrize("quantile", [0.5, 0.95, 0.99])
def test_many_observations_are_counted_in_classes_within_the_stated_error(quantile):
    values = [0.001 * 1.0007**n for n in range(20_000)]
    found = durations(values)
    assert found.percentile(quantile).value == pytest.approx(values[round(quantile * 20_000) - 1], rel=ERROR * 1.01)
    assert found._few is None
    assert len(found._classes) < 2_500


def test_zero_and_tiny_durations_share_the_lowest_class():
    found = durations([0.0] * (EXACT + 10))
    assert 0 < found.percentile(0.5).value <= 1e-6 * (1 + ERROR)


@pytest.mark.parametrize("sizes", [(10, 20), (EXACT, 20), (20, EXACT + 1), (EXACT + 1, 20), (EXACT + 1, EXACT + 1)])
def test_merged_streams_have_the_percentiles_of_one(sizes):
    values = [[0.01 * (number + 1) for number in range(size)] for size in sizes]
    merged = durations(values[0])
    other = Durations()
    other.extend(values[1])
    merged.merge(other)
    one = durations(sorted(values[0] + values[1]))
    assert merged.count == one.count
    for quantile in (0.5, 0.95, 0.99):
        found, expected = merged.percentile(quantile), one.percentile(quantile)
        assert found[2:] == expected[2:]
        assert found.value == pytest.approx(expected.value, rel=3 * ERROR)
