from __future__ import annotations

import json

import pytest
import requests

from prefix_cache_exporter.simulator.live import LiveEngine, Pace
from prefix_cache_exporter.simulator.server import application
from prefix_cache_exporter.simulator.terms import Settings, TooLongError
from prefix_cache_exporter.simulator.usage import Origin
from prefix_cache_exporter.tokens.blocks import PLAIN
from prefix_cache_exporter.web.address import Address
from prefix_cache_exporter.web.http import Request as Call
from prefix_cache_exporter.web.server import WebServer

START = 1_800_000_000.0
ORIGIN = Origin("support", "r41", "payments")
PACE = Pace(step_seconds=0.125, prefill_tokens_per_second=800)  # a prompt of 100 tokens takes a quarter of a second


def live() -> tuple[LiveEngine, list[bytes]]:
    lines: list[bytes] = []
    return LiveEngine("0.32.0", Settings(block_size=16, blocks=64), "org/model", PACE, lines.append), lines


def test_a_step_takes_as_long_as_its_tokens():
    engine, lines = live()
    engine.advance(START)
    engine.ask(range(100), 3, ORIGIN, PLAIN, START)

    engine.advance(START + 0.25)
    assert b'vllm:prompt_tokens_total{engine="0",model_name="org/model"} 100.0' in engine.metrics()
    assert b'vllm:num_requests_running{engine="0",model_name="org/model"} 1.0' in engine.metrics()
    assert lines == []

    engine.advance(START + 0.6)
    written = json.loads(lines[0])
    assert written["ttft_seconds"] == 0.25
    assert written["duration_seconds"] == pytest.approx(0.25 + 2 * (0.125 + 1 / 800))
    assert b'vllm:time_to_first_token_seconds_sum{engine="0",model_name="org/model"} 0.25' in engine.metrics()


def test_what_comes_during_a_step_waits_for_the_next():
    engine, lines = live()
    engine.ask(range(100), 1, ORIGIN, PLAIN, START)
    engine.ask(range(100), 1, ORIGIN, PLAIN, START + 0.05)  # finds what the first computes

    engine.advance(START + 10)

    first, second = map(json.loads, lines)
    assert [line["usage"]["prompt_tokens_details"]["cached_tokens"] for line in (first, second)] == [0, 96]
    assert second["ttft_seconds"] == pytest.approx(0.2 + 0.125 + 4 / 800)
    assert first["id"] != second["id"]


def test_a_prompt_that_is_too_long_leaves_no_trace():
    engine, lines = live()
    with pytest.raises(TooLongError):
        engine.ask(range(40_000), 1, ORIGIN, PLAIN, START)

    engine.advance(START + 10)
    assert lines == []


def test_a_server_answers_its_watchers_over_http():
    engine, _ = live()
    engine.ask(range(100), 1, ORIGIN, PLAIN, START)
    server = WebServer(application(engine, lambda: START + 1), [Address("127.0.0.1", 0)])
    server.start()
    try:
        at = f"http://{server.addresses[0]}"
        page = requests.get(f"{at}/metrics", timeout=5)
        version = requests.get(f"{at}/version", timeout=5)
        health = requests.get(f"{at}/health", timeout=5)
        reset = requests.post(f"{at}/reset_prefix_cache", timeout=5)
    finally:
        server.stop()

    assert page.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert 'vllm:prefix_cache_queries_total{engine="0",model_name="org/model"} 100.0' in page.text
    assert version.json() == {"version": "0.32.0"}
    assert (health.status_code, health.content) == (200, b"")
    assert reset.status_code == 200


def test_a_reset_is_refused_while_a_request_runs():
    engine, _ = live()
    engine.ask(range(100), 5, ORIGIN, PLAIN, START)
    engine.advance(START + 0.2)

    assert application(engine).answer(Call("POST", "/reset_prefix_cache")).status == 409
