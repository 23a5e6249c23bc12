"""Pages recorded from real servers, step by step, against the increases that were expected of each."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from prefix_cache_exporter.engine.apply import apply_page
from prefix_cache_exporter.engine.maps import load_maps

PAGES = Path(__file__).parents[1] / "pages"
EXPECTED = json.loads((PAGES / "expected.json").read_text())
MAPS = load_maps()


def steps(recording):
    pages = sorted((PAGES / recording).glob("[0-9][0-9]_*.prom"))
    return list(itertools.pairwise(pages))


@pytest.mark.parametrize("recording", EXPECTED)
def test_each_step_counts_what_was_expected(recording):
    version = recording.partition("-")[0]
    assert len(steps(recording)) == len(EXPECTED[recording])
    for before, after in steps(recording):
        answer = apply_page(MAPS, version, after.read_bytes(), before.read_bytes()).as_json()
        assert answer["state"] == "verified"
        for measure, value in EXPECTED[recording][after.stem].items():
            assert answer["totals"].get(measure) == value, (after.stem, measure)
            assert (value is None) == (measure in answer["withheld"]), (after.stem, measure)


@pytest.mark.parametrize("recording", EXPECTED)
def test_all_steps_at_once_are_their_sum(recording):
    pages = sorted((PAGES / recording).glob("[0-9][0-9]_*.prom"))
    version = recording.partition("-")[0]
    totals = apply_page(MAPS, version, pages[-1].read_bytes(), pages[0].read_bytes()).as_json()["totals"]
    for measure in ("prompt_tokens", "cached_prompt_tokens", "lookup_tokens", "generation_tokens"):
        assert totals[measure] == sum(step[measure] for step in EXPECTED[recording].values())


def test_a_scheduler_driven_in_one_process():
    answer = apply_page(MAPS, "0.32.0", (PAGES / "inproc-0.32.0.prom").read_bytes()).as_json()
    assert answer["totals"]["prompt_tokens"] > 0
