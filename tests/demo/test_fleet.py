"""The demo's plot, told in no time: what reuse does in each chapter."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from prefix_cache_exporter.demo.fleet import Server
from prefix_cache_exporter.demo.plot import CHAPTERS, COLD_WINDOW_SECONDS
from prefix_cache_exporter.demo.prompts import REVISIONS, SEARCH_R7, SUPPORT_R41, SUPPORT_R42, SUPPORT_R43
from prefix_cache_exporter.demo.traffic import NAMESPACES, arrivals
from prefix_cache_exporter.tokens.blocks import shared_tokens

if TYPE_CHECKING:
    from pathlib import Path

START = 1_800_000_000.0


def server(folder: Path, version: str = "0.32.0") -> Server:
    return Server(version, SUPPORT_R41, folder / "usage.jsonl", per_second=6, seed=1, start=START)


def records(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "usage.jsonl").read_text("utf-8").splitlines()]


def population_hit_ratio(lines: list[dict]) -> float:
    cached = sum(line["usage"]["prompt_tokens_details"]["cached_tokens"] for line in lines)
    return cached / sum(line["usage"]["prompt_tokens"] for line in lines)


def test_reuse_dips_collapses_and_comes_back(tmp_path):
    one = server(tmp_path)
    now, early, late = START, [], []
    for chapter in CHAPTERS:
        one.release(chapter.revision)
        began = now
        now += COLD_WINDOW_SECONDS + 10
        one.advance(now)
        of_chapter = [
            line
            for line in records(tmp_path)
            if line["metadata"]["template_revision"] == chapter.revision.name and line["created"] >= began
        ]
        early.append(population_hit_ratio([line for line in of_chapter if line["created"] < began + 4]))
        late.append(
            population_hit_ratio([line for line in of_chapter if line["created"] >= began + COLD_WINDOW_SECONDS])
        )
    one.close()

    assert len({line["id"] for line in records(tmp_path)}) == len(records(tmp_path))
    warm, appended, timestamped, rolled_back = late
    assert min(warm, appended, rolled_back) > 0.9
    assert timestamped == 0.0
    assert all(ratio < 0.8 for ratio in early)  # every release begins cold


def test_a_collapse_is_felt_as_latency(tmp_path):
    one = server(tmp_path)
    one.advance(START + 20)
    one.release(SUPPORT_R43)
    one.advance(START + 40)
    one.close()

    def mean_ttft(first: float, end: float) -> float:
        times = [line["ttft_seconds"] for line in records(tmp_path) if START + first <= line["created"] < START + end]
        return sum(times) / len(times)

    assert mean_ttft(25, 40) > 2 * mean_ttft(10, 20)


def test_a_server_shows_its_own_release_of_vllm(tmp_path):
    one = server(tmp_path, "0.28.0")

    answered = one({"REQUEST_METHOD": "GET", "PATH_INFO": "/version"}, lambda *_: None)

    assert list(answered) == [b'{"version": "0.28.0"}']
    one.close()


def test_revisions_share_what_they_say_they_share():
    question = [f"word-{number}" for number in range(50)]
    r41, r42, r43 = (revision.render(question, START) for revision in (SUPPORT_R41, SUPPORT_R42, SUPPORT_R43))

    assert shared_tokens(r41, r42) == SUPPORT_R41.shared_tokens == 1_800
    assert shared_tokens(r42, r43) == 0
    assert shared_tokens(r43, SUPPORT_R43.render(question, START + 1)) == 3  # "the time is"
    assert shared_tokens(r41, SEARCH_R7.render(question, START)) == 0
    assert [revision.shared_tokens for revision in REVISIONS] == [900, 1_800, 1_888, 1_888]


def test_the_same_requests_come_in_every_run():
    one, other = (arrivals(START, 10, seed=1) for _ in range(2))
    first = [next(one) for _ in range(300)]

    assert first == [next(other) for _ in range(300)]
    assert {arrival.namespace for arrival in first} == set(NAMESPACES)
    assert len({arrival.tenant for arrival in first}) == sum(NAMESPACES.values())
    assert first[-1].time - START == pytest.approx(30, rel=0.2)
    assert len({arrival.question[:1] for arrival in first}) == 300
