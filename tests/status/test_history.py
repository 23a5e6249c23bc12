from __future__ import annotations

from prefix_cache_exporter import measures
from support.status import World

PROMPT = measures.ENGINE["prompt_tokens"].name


def test_the_increase_of_the_last_minutes() -> None:
    world = World()
    for _ in range(10):
        world.add("a", engine_prompt_tokens=100)
        world.clock.advance(60)
    assert world.history.total()[PROMPT, "a"] == 1000
    assert world.history.increase(300)[PROMPT, "a"] == 400  # looks at 5, 6, 7, 8 and 9 minutes
    assert world.history.increase(1)[PROMPT, "a"] == 0


def test_looks_closer_together_than_the_interval_are_one() -> None:
    world = World()
    for _ in range(3):
        world.add("a", engine_prompt_tokens=100)
        world.clock.advance(1)
    assert world.history.increase(300)[PROMPT, "a"] == 200


def test_steps_before_the_first_look_are_empty() -> None:
    world = World()
    world.add("a", engine_prompt_tokens=100)
    world.clock.advance(60)
    world.add("a", engine_prompt_tokens=50)
    world.clock.advance(60)
    world.add("a", engine_prompt_tokens=7)
    assert [step.get((PROMPT, "a")) for step in world.history.steps(3, 180)] == [None, 50, 7]


def test_memory_is_bounded() -> None:
    world = World()
    for _ in range(500):
        world.add("a", engine_prompt_tokens=1)
        world.clock.advance(5)
    assert len(world.history._looks) == 361
