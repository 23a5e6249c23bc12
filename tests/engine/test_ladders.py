"""Histograms that hold together, on pages as prometheus-client makes them and beside them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.mmap_dict import MmapedDict, mmap_key
from prometheus_client.multiprocess import MultiProcessCollector

from prefix_cache_exporter.engine.ladders import edge_of, ladders_of
from prefix_cache_exporter.engine.page import read_page


def holds(rungs, count=None):
    samples = [(n, "f_bucket", (("engine", "0"), ("le", edge))) for n, (edge, _) in enumerate(rungs)]
    values = [value for _, value in rungs]
    if count is not None:
        samples.append((len(values), "f_count", (("engine", "0"),)))
        values.append(count)
    [ladder] = ladders_of("f", samples)
    assert ladder.key == (("engine", "0"),)
    return ladder.holds(values)


@pytest.mark.parametrize(
    ("rungs", "count", "expected"),
    [
        ([("1", 2), ("+Inf", 2)], 2, True),
        ([("1", 3), ("+Inf", 2)], 3, False),
        ([("1", 2), ("+Inf", 2)], 1, False),
        ([("1", 2)], 1, True),  # what the last bucket would say is not known: it is incomplete, not torn
        ([("5", 3), ("10", 2), ("+Inf", 3)], 3, False),
        ([("10", 3), ("5", 2), ("+Inf", 3)], 3, True),
        ([("1", 2), ("1.0", 2), ("+Inf", 2)], 2, True),
        ([("1", 2), ("x", 9), ("+Inf", 2)], 2, True),
        ([("1", math.nan), ("+Inf", 2)], 2, False),
    ],
)
def test_what_holds_together(rungs, count, expected):
    assert holds(rungs, count) == expected


@pytest.mark.parametrize(
    ("text", "edge"), [("+Inf", math.inf), ("0.5", 0.5), ("1e3", 1000.0), ("inf", None), ("1_0", None), ("", None)]
)
def test_edges(text, edge):
    assert edge_of(text) == edge


def torn_of(registry):
    return read_page(generate_latest(registry), None, {"t"}).families["t"].torn


EDGES = (0.1, 1.0, math.inf)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.tuples(st.sampled_from((0.05, 0.5, 7.0)), st.booleans()), max_size=5), min_size=1, max_size=4)
)
def test_a_server_of_several_processes_is_never_torn(tmp_path_factory, processes):
    """Each process adds to its own file, first the sum and then the bucket, and a page may be made in between."""
    folder = tmp_path_factory.mktemp("multiprocess")
    for pid, observations in enumerate(processes):
        file = MmapedDict(str(folder / f"histogram_{pid}.db"))
        keys = {e: mmap_key("t", "t_bucket", ("le",), ("+Inf" if e == math.inf else str(e),), "help") for e in EDGES}
        total = mmap_key("t", "t_sum", (), (), "help")
        held = dict.fromkeys((total, *keys.values()), 0.0)
        for amount, whole in observations:
            held[total] += amount
            held[keys[next(edge for edge in EDGES if amount <= edge)]] += whole
        for key, value in held.items():
            file.write_value(key, value, 0.0)
        file.close()
    registry = CollectorRegistry()
    MultiProcessCollector(registry, str(folder))
    assert torn_of(registry) == ()


def test_a_server_of_one_process_is_never_torn():
    registry = CollectorRegistry()
    histogram = Histogram("t", "help", buckets=EDGES, registry=registry)
    for amount in (0.05, 0.5, 7.0, 7.0):
        histogram.observe(amount)
        assert torn_of(registry) == ()
