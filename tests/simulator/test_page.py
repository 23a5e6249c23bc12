"""The model's page against the pages of real servers that ran the same script."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from prefix_cache_exporter.simulator.engine import Engine
from prefix_cache_exporter.simulator.page import Page
from prefix_cache_exporter.simulator.rules import Rules, UnknownVersionError
from support.vllm_replay import FULL, RECORDINGS, Replay

PAGES = Path(__file__).parents[1] / "pages"

# The client of the library: what it says of this machine's Python differs from what it said of the recorded one.
PYTHON = re.compile(r"(python_info)\{.*\}")
# How long a thing took, when a counter was made, and how many steps there were while a client was hanging up.
TIMED = re.compile(r"_seconds_(sum|bucket)|_created|^vllm:iteration_tokens_total|^(python|process|http)_")


def last_page(name: str) -> str:
    return max((PAGES / name).glob("*.prom")).read_text("utf-8")


def shape(page: str) -> list[str]:
    """Every line of a page, in its order, without the values."""
    return [line if line.startswith("#") else PYTHON.sub(r"\1", line.rpartition(" ")[0]) for line in page.splitlines()]


def values(page: str) -> dict[str, str]:
    lines = (line.rpartition(" ") for line in page.splitlines() if not line.startswith("#"))
    return {series: value for series, _, value in lines if not TIMED.search(series)}


@pytest.fixture(scope="module", params=RECORDINGS)
def pages(request) -> tuple[str, str]:
    replay = Replay(RECORDINGS[request.param])
    list(replay.run())
    return replay.page.render(replay.engine).decode(), last_page(request.param)


def test_the_page_after_a_script_has_the_recorded_lines_in_the_recorded_order(pages):
    predicted, recorded = pages

    assert shape(predicted) == shape(recorded)


def test_every_value_that_is_not_a_time_is_the_recorded_one(pages):
    predicted, recorded = pages

    assert values(predicted) == values(recorded)


@pytest.mark.parametrize("version", ["0.12.0", "0.28.0", "0.32.0"])
def test_a_fresh_server_has_all_its_series(version):
    page = Page(version, FULL, "tiny")
    for _ in range(4):  # the recorder had asked for the tokens of four prompts
        page.http("/tokenize", status=200, seconds=0.01, received=100, sent=100)

    rendered = page.render(Engine(FULL, Rules.of(version), page)).decode()

    assert shape(rendered) == shape((PAGES / version / "00_start.prom").read_text("utf-8"))


def test_a_release_between_the_recorded_ones_has_what_its_wheel_has():
    names = {
        line.split(" ")[2]
        for line in Page("0.17.1", FULL, "m").render(Engine(FULL, Rules.of("0.17.1"))).decode().splitlines()
        if line.startswith("# TYPE")
    }

    assert "vllm:prompt_tokens_recomputed_total" in names  # 0.16.0 to 0.19.1
    assert "vllm:prompt_tokens_cached_total" in names  # since 0.16.0
    assert "vllm:num_requests_waiting_by_reason" not in names  # since 0.20.0


def test_a_cache_without_limit_says_so():
    settings = FULL.__class__(block_size=16, blocks=None)
    page = Page("0.32.0", settings, "m").render(Engine(settings, Rules.of("0.32.0"))).decode()

    assert 'num_gpu_blocks="None"' in page
    assert 'vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.0' in page


@pytest.mark.parametrize("version", ["0.11.2", "0.34.0", "nightly", "0.12.x"])
def test_releases_without_facts_are_refused(version):
    with pytest.raises(UnknownVersionError, match=f"engine version: got {version}, expected a release from 0.12.0 to"):
        Page(version, FULL, "tiny")
