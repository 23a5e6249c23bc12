from __future__ import annotations

import json
from pathlib import Path

import pytest

from prefix_cache_exporter.usage.intake import Intake
from prefix_cache_exporter.usage.maps.book import get_map
from support.usage import encode, outcomes, settled, sums

RECORDS = sorted((Path(__file__).parents[1] / "records").glob("*.json"))


@pytest.mark.parametrize("file", RECORDS, ids=lambda file: file.stem)
def test_a_recorded_sample_comes_out_as_stated(file):
    sample = json.loads(file.read_text())
    expected = dict(sample["expected"])
    quality = expected.pop("quality")
    records = settled(sample["format"], *sample["lines"], includes=sample.get("input_includes_cache"))
    assert sums(records) == expected
    assert quality in {record.quality for record in records}


@pytest.mark.parametrize("file", RECORDS, ids=lambda file: file.stem)
def test_the_fast_lane_and_the_general_way_agree_on_samples(file):
    sample = json.loads(file.read_text())
    slow = Intake(get_map(sample["format"]))
    expected = [outcome for line in sample["lines"] for outcome in slow.slowly(encode(line), 0.0, "file")]
    assert outcomes(sample["format"], *sample["lines"]) == [*expected, *slow.settle(0.0, everything=True)]
