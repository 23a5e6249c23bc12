"""A bound is on what is in use at once: revisions that nobody uses any more give their places to new ones."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from prefix_cache_exporter import measures
from prefix_cache_exporter.labels import Limits
from prefix_cache_exporter.recorder import Change, Recorder
from prefix_cache_exporter.state import Store
from support.clock import Clock
from support.page import page, samples

if TYPE_CHECKING:
    from pathlib import Path

USED = measures.USAGE["requests"]
LINES = measures.USAGE["lines"]
INFO = measures.FAMILIES["prefix_cache_release_info"]
DAY = 86_400


@pytest.fixture
def clock() -> Clock:
    return Clock()


def recorder(clock: Clock, path: Path | None = None, **limits: int) -> Recorder:
    bounds = Limits(labels={"template_revision": limits.get("revisions", 3)}, series=limits.get("series", 10_000))
    return Recorder(Store(path), bounds, hold_seconds=0, expire_seconds=DAY, clock=clock)


def use(rec: Recorder, *revisions: str, amount: int = 1) -> None:
    change = Change()
    for revision in revisions:
        change.add(USED, {"source": "gw", "template": "t", "template_revision": revision}, amount)
    rec.apply(change)
    rec.commit()


def later(rec: Recorder, clock: Clock, seconds: float) -> None:
    page(rec)
    clock.advance(seconds)
    page(rec)


def by_revision(rec: Recorder) -> dict[str, float]:
    rows = samples(rec, USED.series_name)
    return {text.partition('template_revision="')[2][:-1]: value for text, value in rows.items()}


def test_a_new_revision_takes_the_place_of_the_one_that_was_longest_unused(clock: Clock, tmp_path: Path) -> None:
    rec = recorder(clock, tmp_path / "s.db")
    for revision in ("r1", "r2", "r3"):
        use(rec, revision)
        later(rec, clock, 2 * DAY)
    use(rec, "r4", amount=5)
    assert by_revision(rec) == {"r4": 5}
    use(rec, "r2")  # it was kept, and goes on
    assert by_revision(rec) == {"r2": 2, "r4": 5}
    later(rec, clock, 2 * DAY)
    use(rec, "r1")  # it was not, and begins anew
    assert by_revision(rec) == {"r1": 1}
    rec.close()
    assert by_revision(recorder(clock, tmp_path / "s.db")) == {"r1": 1}
    with closing(sqlite3.connect(tmp_path / "s.db")) as db:
        (stored,) = db.execute("SELECT count(*) FROM series WHERE labels LIKE '%r3%'")
    assert stored == (0,)


def test_what_is_in_use_keeps_its_place(clock: Clock) -> None:
    rec = recorder(clock)
    use(rec, "r1", "r2", "r3")
    later(rec, clock, DAY - 1)
    use(rec, "r4", "r5")
    assert by_revision(rec) == {"r1": 1, "r2": 1, "r3": 1, "other": 2}
    later(rec, clock, 62)
    use(rec, "r6")
    assert by_revision(rec) == {"r6": 1, "other": 2}


def test_a_value_that_another_source_uses_is_in_use(clock: Clock) -> None:
    rec = recorder(clock)
    use(rec, "r1", "r2", "r3")
    later(rec, clock, DAY - 10)
    change = Change()
    for revision in ("r1", "r2", "r3"):
        change.add(USED, {"source": "other-gw", "template": "t", "template_revision": revision}, 1)
    rec.apply(change)
    rec.commit()
    later(rec, clock, 20)
    use(rec, "r4")
    assert by_revision(rec) == {"r1": 1, "r2": 1, "r3": 1, "other": 1}


def test_a_flood_of_new_values_is_bounded_whatever_is_withdrawn(clock: Clock) -> None:
    rec = recorder(clock, revisions=20)
    use(rec, *(f"old-{number}" for number in range(20)))
    later(rec, clock, 2 * DAY)
    use(rec, *(f"new-{number}" for number in range(1000)))
    found = by_revision(rec)
    assert len(found) == 21
    assert found["other"] == 980
    assert samples(rec, "prefix_cache_exporter_label_overflow_total") == {'label="template_revision"': 980}
    assert samples(rec, "prefix_cache_exporter_series") == {"": 21}


def test_series_of_a_full_family_that_are_withdrawn_give_way(clock: Clock) -> None:
    rec = recorder(clock, revisions=100, series=3)
    use(rec, "r1", "r2", "r3")
    later(rec, clock, 2 * DAY)
    use(rec, "r4")
    assert by_revision(rec) == {"r4": 1}
    assert not samples(rec, "prefix_cache_exporter_series_overflow_total")


def test_totals_of_a_source_never_fall(clock: Clock) -> None:
    rec = recorder(clock)
    use(rec, "r1", "r2", "r3", amount=10)
    later(rec, clock, 2 * DAY)
    before = rec.totals(("source",))[USED.name, "gw"]
    use(rec, "r4")
    assert (before, rec.totals(("source",))[USED.name, "gw"]) == (30, 31)


def test_where_nothing_could_be_forgotten_nobody_looks_again_at_once(clock: Clock) -> None:
    rec = recorder(clock)
    use(rec, "r1", "r2", "r3")
    later(rec, clock, DAY - 30)
    use(rec, "r4")
    later(rec, clock, 40)
    use(rec, "r5")  # 40 s after a look in vain
    assert by_revision(rec) == {"other": 2}
    later(rec, clock, 30)
    use(rec, "r5")
    assert by_revision(rec) == {"other": 2, "r5": 1}


def test_levels_that_are_set_again_overflow_nothing(clock: Clock) -> None:
    rec = recorder(clock, revisions=1)
    use(rec, "r1")
    for _ in range(5):
        rec.replace_gauges(INFO, {}, [({"source": "gw", "template_revision": "r2"}, 1)])
    assert not samples(rec, "prefix_cache_exporter_label_overflow_total")
