"""The end-to-end run's expectations, held to the recordings: no server needed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from e2e_vllm.expect import MEASURES, expected
from e2e_vllm.steps import RUNS, shared_prefix

PAGES = Path(__file__).parents[1] / "pages"
RECORDED = json.loads((PAGES / "expected.json").read_text("utf-8"))


def steps(recording: str) -> list[tuple[str, list[dict], dict]]:
    recorded = json.loads((PAGES / recording / "steps.json").read_text("utf-8"))["steps"]
    return [(step["step"], step["requests"], RECORDED[recording][step["step"]]) for step in recorded]


@pytest.mark.parametrize("recording", RECORDED)
def test_recorded_increases_are_as_the_usage_objects_say(recording):
    for name, requests, increases in steps(recording):
        found = expected(requests, recording)
        assert found.differences(increases) == [], name


@pytest.mark.parametrize("recording", [name for name in RECORDED if len(RECORDED[name]) == 32])
def test_the_exceptions_are_the_documented_ones(recording):
    excepted = {
        name[3:]: found.exceptions
        for name, requests, _ in steps(recording)
        if (found := expected(requests, recording)).exceptions
    }
    assert excepted == {
        "stream_no_usage": ["a stream without usage"],
        "stream_aborted": ["an aborted stream"],
        "abort_at_once": ["an aborted stream"],
        "n2": ["n > 1: every copy's prompt is counted, usage has it once"],
        "prompt_logprobs": ["prompt_logprobs: counted as prompt, never looked up"],
    }


@pytest.mark.parametrize("measure", MEASURES)
def test_a_wrong_increase_is_told(measure):
    requests = [
        {
            "path": "/v1/chat/completions",
            "options": {},
            "status": 200,
            "usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}},
        }
    ]
    right = {"prompt_tokens": 9, "cached_prompt_tokens": 4, "lookup_tokens": 9, "generation_tokens": 2}
    found = expected(requests, "0.32.0")
    assert found.differences(right) == []
    assert found.differences(right | {measure: 5})[0] == f"{measure}: expected {right[measure]}, got 5"
    assert found.differences({name: right[name] for name in right if name != measure})


def test_an_engine_that_tells_no_cached_tokens_has_its_prompts_excluded():
    usage = {"prompt_tokens": 474, "completion_tokens": 8, "prompt_tokens_details": None}
    request = {"path": "/v1/chat/completions", "options": {}, "status": 200, "usage": usage}
    found = expected([request], "0.8.5").without_sides()
    assert found.differences({"excluded_prompt_tokens": 474, "generation_tokens": 8}) == []
    assert found.differences({"excluded_prompt_tokens": 474, "generation_tokens": 8, "lookup_tokens": 0}) == [
        "lookup_tokens: expected none, got 0"
    ]
    assert found.differences({"excluded_prompt_tokens": 473, "generation_tokens": 8}) == [
        "excluded_prompt_tokens: expected 474, got 473",
        "excluded_prompt_tokens: usage objects sum to 474, got 473",
    ]


def test_lookups_of_preempted_requests_may_be_many():
    usage = {"prompt_tokens": 793, "completion_tokens": 3600, "prompt_tokens_details": None}
    request = {"path": "/v1/chat/completions", "options": {}, "status": 200, "usage": usage}
    found = expected([request], "0.10.2").recounted()
    counted = {"prompt_tokens": 793, "cached_prompt_tokens": 0, "lookup_tokens": 323_958, "generation_tokens": 3600}
    assert found.differences(counted) == []
    assert found.differences(counted | {"prompt_tokens": 792}) == ["prompt_tokens: expected 793, got 792"]


@pytest.mark.parametrize(("version", "differences"), [("0.9.2", 0), ("0.10.2", 1), ("0.24.0", 0)])
def test_usage_that_says_nothing_of_cached_tokens_means_none_where_it_would_tell(version, differences):
    usage = {"prompt_tokens": 450, "completion_tokens": 4}
    request = {"path": "/v1/completions", "options": {}, "status": 200, "usage": usage}
    counted = {"prompt_tokens": 450, "cached_prompt_tokens": 384, "lookup_tokens": 450, "generation_tokens": 4}
    assert len(expected([request], version).differences(counted)) == differences


def test_a_stream_that_breaks_off_on_the_server_is_bounded():
    """As /v1/responses of 0.10.2 does under a newer client library, after all was generated."""
    request = {"path": "/v1/responses", "options": {"max_output_tokens": 8, "stream": True}, "prompt_tokens": 550}
    found = expected([request | {"status": 200, "usage": None}], "0.10.2")
    counted = {"prompt_tokens": 550, "cached_prompt_tokens": 512, "lookup_tokens": 550, "generation_tokens": 8}
    assert found.differences(counted) == []
    assert found.exceptions == ["a stream without usage"]
    assert found.differences(counted | {"prompt_tokens": 549}) == ["prompt_tokens: expected 550, got 549"]


@pytest.mark.parametrize(
    ("run", "recording"), [("full", "0.32.0"), ("chunked", "0.32.0-block32-chunked"), ("preempt", "0.32.0-preempt")]
)
def test_the_script_is_the_recorded_one(run, recording):
    recorded = json.loads((PAGES / recording / "steps.json").read_text("utf-8"))
    script = RUNS[run].steps(128)
    assert [f"{number:02}_{step.name}" for number, step in enumerate(script, 1)] == [
        step["step"] for step in recorded["steps"]
    ]
    assert [[send.path for send in step.sends] for step in script] == [
        [request["path"] for request in step["requests"]] for step in recorded["steps"]
    ]
    if recorded["shared_prefix"]:
        assert shared_prefix(128) == recorded["shared_prefix"]
