from __future__ import annotations

from prefix_cache_exporter.simulator.engine import Engine
from prefix_cache_exporter.simulator.page import Page
from prefix_cache_exporter.simulator.requests import Prompt, Request
from prefix_cache_exporter.simulator.residency import Eviction, Residency
from prefix_cache_exporter.simulator.rules import Rules
from prefix_cache_exporter.simulator.terms import Settings


def test_a_block_tells_of_its_life_when_it_is_handed_out_anew():
    told: list[Eviction] = []
    residency = Residency(1.0, told.append)
    for now, happens in (
        (10.0, residency.allocated),
        (12.0, residency.used),
        (15.0, residency.used),
        (22.0, residency.allocated),
        (23.0, residency.allocated),
    ):
        residency.now = now
        happens(7)

    assert told == [Eviction(12.0, 7.0, (3.0,)), Eviction(1.0, 1.0, ())]


def test_only_the_last_uses_are_remembered():
    told: list[Eviction] = []
    residency = Residency(1.0, told.append)
    residency.allocated(7)
    for now in (1.0, 2.0, 4.0, 8.0, 16.0, 32.0):
        residency.now = now
        residency.used(7)
    residency.allocated(7)

    assert told[0].gaps == (4.0, 8.0, 16.0)


def test_what_is_not_sampled_or_was_reset_tells_nothing():
    told: list[Eviction] = []
    sampled = Residency(0.1, told.append, seed=1)
    for block in range(1_000):
        sampled.allocated(block)
        sampled.used(block)
    for block in range(1_000):
        sampled.allocated(block)
    assert 50 < len(told) < 150

    sampled.forget()
    told.clear()
    for block in range(1_000):
        sampled.allocated(block)
    assert told == []


def test_the_page_shows_what_was_sampled():
    settings = Settings(block_size=4, blocks=5, max_model_len=64, residency_sample=1.0)
    page = Page("0.32.0", settings, "m")
    engine = Engine(settings, Rules.of("0.32.0"), page)
    for number in range(6):
        for again in range(3):
            engine.submit(Request(f"{number}-{again}", Prompt.of(range(number * 100, number * 100 + 13), 4), 1))
            while engine.busy:
                engine.step(now=10.0 * number + again)
    assert engine.reset_cache()

    lines = page.render(engine).decode().splitlines()

    # Three full blocks and a tail, of which each repetition takes the tail anew; the last prompt's blocks still live.
    assert 'vllm:kv_block_lifetime_seconds_count{engine="0",model_name="m"} 32.0' in lines
    assert 'vllm:kv_block_idle_before_evict_seconds_count{engine="0",model_name="m"} 32.0' in lines
    assert 'vllm:kv_block_reuse_gap_seconds_count{engine="0",model_name="m"} 15.0' in lines
    assert 'vllm:kv_block_reuse_gap_seconds_sum{engine="0",model_name="m"} 15.0' in lines
