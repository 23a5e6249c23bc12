"""Records as the APIs, SDKs, gateways and agents write them, `tests/records/formats/`: what each comes to, by hand.

A case is a few lines of one log. `expected` has, per settled record, total, read, written, uncached and output tokens,
quality and status; `dup`, `lost:…` and `q:…` (quarantined) stand for what gives none, and lines that the map leaves out
for nothing. `also` has other attributes, one for all records or one for each.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from prefix_cache_exporter.usage.intake import Intake
from prefix_cache_exporter.usage.maps.book import get_map, shipped_maps
from prefix_cache_exporter.usage.record import Quarantined, Skipped, UsageRecord
from support.usage import counts, encode, outcomes

CASES = [
    case
    for file in sorted((Path(__file__).parents[1] / "records" / "formats").glob("*.json"))
    for case in json.loads(file.read_text())
]


def shown(outcome):
    if isinstance(outcome, UsageRecord):
        return [*counts(outcome), outcome.quality, outcome.status]
    if isinstance(outcome, Skipped):
        return None if outcome.kind == "ignored" else f"lost:{outcome.reason}"
    return f"q:{outcome.reason}" if isinstance(outcome, Quarantined) else "dup"


def attribute(record, name):
    value = getattr(record, name)
    return list(value) if isinstance(value, tuple) else value


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['format']}: {case['case']}")
def test_a_log_comes_to_what_its_numbers_say(case):
    found = outcomes(case["format"], *case["lines"])
    assert [line for one in found if (line := shown(one)) is not None] == case["expected"]
    records = [one for one in found if isinstance(one, UsageRecord)]
    for name, expected in case.get("also", {}).items():
        each = expected if isinstance(expected, list) and name != "anomalies" else [expected] * len(records)
        assert [attribute(record, name) for record in records] == each, name


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['format']}: {case['case']}")
def test_the_general_way_says_the_same_as_the_fast_lane(case):
    general = Intake(get_map(case["format"]))
    found = [one for line in case["lines"] for one in general.slowly(encode(line), 0.0, "file")]
    found += general.settle(0.0, everything=True)
    kept = [outcome for outcome in outcomes(case["format"], *case["lines"]) if not isinstance(outcome, Skipped)]
    assert [outcome for outcome in found if not isinstance(outcome, Skipped)] == kept


def test_every_format_of_which_requests_are_counted_is_tried():
    tried = Counter(get_map(case["format"]).format for case in CASES)
    alike = (".stream", "anthropic", "responses", "messages", "dynamo")  # a known map under another provider's name
    untried = [name for name in shipped_maps().formats if name not in tried]
    assert all(any(word in name for word in alike) for name in untried), untried
