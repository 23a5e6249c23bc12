from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from prefix_cache_exporter import measures
from prefix_cache_exporter.recorder import Change
from prefix_cache_exporter.status.view import Note, SourceView, ago, build
from support.status import CAVEATS, World, story

if TYPE_CHECKING:
    from collections.abc import Iterable


def views(world: World) -> dict[str, SourceView]:
    found: Iterable[SourceView] = build(
        world.recorder.exposed(),
        total=world.history.total(),
        recent=world.history.increase(300),
        steps=world.history.steps(30, 1800),
        now=world.clock(),
        describe_caveat=lambda id_: CAVEATS.get(id_, id_),
    )
    return {view.name: view for view in found}


def shown(view: SourceView, id_: str) -> tuple[float, float, float | None]:
    (total,) = [one.total for one in view.ratios if one.ratio.id == id_]
    return total.numerator, total.denominator, total.value and round(total.value, 3)


def test_the_worked_example_comes_out() -> None:
    world = World()
    world.add("a", engine_prompt_tokens=133_920, engine_cached_prompt_tokens=61_440)
    world.add(
        "a",
        usage_prompt_tokens=133_920,
        usage_cached_prompt_tokens=61_440,
        usage_eligible_tokens=81_920,
        usage_eligible_cached_tokens=61_440,
    )
    view = views(world)["a"]
    assert shown(view, "engine_population_hit") == (61_440, 133_920, 0.459)
    assert shown(view, "usage_population_hit") == (61_440, 133_920, 0.459)
    assert shown(view, "usage_eligible_prefix") == (61_440, 81_920, 0.75)


def test_ratios_sum_over_revisions_before_they_divide() -> None:
    world = World()
    world.add("a", "r1", engine_prompt_tokens=10_000, engine_cached_prompt_tokens=9_000)
    world.add("a", "r2", engine_prompt_tokens=100, engine_cached_prompt_tokens=0)
    assert shown(views(world)["a"], "engine_population_hit") == (9_000, 10_100, 0.891)


def test_no_traffic_and_not_known_are_not_zero() -> None:
    world = World()
    world.add("idle", engine_prompt_tokens=0, engine_cached_prompt_tokens=0)
    world.add("v0", engine_excluded_prompt_tokens=500)
    found = views(world)
    assert shown(found["idle"], "engine_population_hit") == (0, 0, None)
    assert shown(found["v0"], "engine_population_hit") == (0, 0, None)
    assert "not known" not in world.html().split("idle</h2>")[1].split("v0</h2>")[0]
    assert "not known" in world.html().split("v0</h2>")[1]


def test_money_is_shown_in_units() -> None:
    world = World()
    world.add("a", usage_input_cost=36 * 10**10, usage_counterfactual_input_cost=10**12)
    assert shown(views(world)["a"], "usage_net_input_cost") == (0.36, 1.0, 0.36)


def test_a_source_says_how_it_is_in_words() -> None:
    found = views(story())
    assert found["llama-b"].state == [
        Note("engine down: refused (4 times) in the last 5 minutes; last page 2 min ago", "bad"),
        Note("metric map unknown", "bad"),
    ]
    good = found["llama-a"]
    assert [note.text for note in good.state] == ["engine up", "metric map verified", "log readable"]
    assert dict(good.facts)["Log lag"] == "1,234 bytes unread"
    assert dict(good.facts)["Block size"] == "16 tokens"
    assert good.caveats == [("preemption_recount", CAVEATS["preemption_recount"])]
    assert good.withheld == [("block_lifetime_seconds", "flag_off")]
    assert good.releases == ["support r42"]
    assert (good.tone, found["llama-b"].tone) == ("good", "bad")


@pytest.mark.parametrize(
    ("state", "reason", "said"),
    [
        (
            "unknown",
            "unknown_version",
            "unknown: neither the server nor engine_version names a version that a map describes",
        ),
        ("mismatch", "version_mismatch", "mismatch: the server names another version than engine_version"),
        ("mismatch", "mismatch", "mismatch: the page is not what its version writes"),
        ("mismatch", "missing", "mismatch: the page lacks what its version writes"),
        ("mismatch", "not_exposed", "mismatch"),
        ("unverified", "missing", "unverified"),
    ],
)
def test_a_page_that_is_not_believed_says_why(state: str, reason: str, said: str) -> None:
    world = World()
    world.recorder.set_gauge(measures.ENGINE["up"], {"source": "a"}, 1)
    world.recorder.set_gauge(measures.ENGINE["map_state"], {"source": "a", "state": state}, 1)
    withheld = {"source": "a", "measure": "prompt_tokens", "reason": reason}
    world.recorder.set_gauge(measures.ENGINE["withheld"], withheld, 1)
    assert views(world)["a"].state[1].text == f"metric map {said}"


@pytest.mark.parametrize(("valid", "said"), [(0, ["engine up", "release file not taken"]), (1, ["engine up"])])
def test_a_release_file_that_is_not_taken_is_told(valid: float, said: list[str]) -> None:
    """What was in force before stays so, and looks like a release that never came."""
    world = World()
    world.recorder.set_gauge(measures.ENGINE["up"], {"source": "a"}, 1)
    world.recorder.set_gauge(measures.EXPORTER["release_file_valid"], {"source": "a"}, valid)
    view = views(world)["a"]
    assert ([note.text for note in view.state], view.tone) == (said, "good" if valid else "bad")


def test_an_engine_that_never_answered_has_no_page_yet() -> None:
    world = World()
    world.recorder.set_gauge(measures.ENGINE["up"], {"source": "a"}, 0)
    assert views(world)["a"].state == [Note("engine down; no page yet", "bad")]


def test_losses_stand_by_reason() -> None:
    world = World()
    change = Change()
    change.add(measures.USAGE["lost_lines"], {"source": "gw", "reason": "too_long"}, 3)
    change.add(measures.USAGE["quarantined_records"], {"source": "gw", "reason": "negative"}, 0)
    change.add(measures.USAGE["unpriced_requests"], {"source": "gw", "reason": "model_unknown"}, 7)
    world.recorder.apply(change)
    world.recorder.commit()
    world.log("gw", readable=False)
    view = views(world)["gw"]
    assert ("Lines lost", "3 too_long") in view.facts
    assert ("Requests without a price", "7 model_unknown") in view.facts
    assert "Records quarantined" not in dict(view.facts)
    assert view.tone == "bad"


def test_the_sparkline_has_a_gap_where_nothing_came() -> None:
    world = World()
    world.add("a", engine_prompt_tokens=0, engine_cached_prompt_tokens=0)
    world.clock.advance(60)
    world.add("a", engine_prompt_tokens=100, engine_cached_prompt_tokens=50)
    world.clock.advance(60)
    world.history.look()
    world.clock.advance(60)
    spark = views(world)["a"].ratios[0].spark
    assert spark[-3:] == (0.5, None, None)
    assert set(spark[:-3]) == {None}


@pytest.mark.parametrize(
    ("seconds", "text"), [(-5, "0 s"), (59, "59 s"), (60, "1 min"), (7200, "2 h"), (200_000, "2 d")]
)
def test_durations_in_words(seconds: float, text: str) -> None:
    assert ago(seconds) == text
