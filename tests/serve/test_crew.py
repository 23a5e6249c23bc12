from __future__ import annotations

import pytest

from prefix_cache_exporter import measures
from prefix_cache_exporter.labels import Limits
from prefix_cache_exporter.recorder import Recorder
from prefix_cache_exporter.serve.crew import BusyError, Crew, Place, Post
from prefix_cache_exporter.state import Store
from support.page import samples

A, B = Place("engine", "a"), Place("engine", "b")


class Worker:
    def __init__(self, log, name, *, ends=True, caught_up=True):
        self.log, self.name, self.ends, self.caught_up = log, name, ends, caught_up

    def start(self):
        self.log.append(f"start {self.name}")

    def stop(self):
        self.log.append(f"stop {self.name}")

    def join(self, timeout=None):
        return self.ends


@pytest.fixture
def recorder():
    recorder = Recorder(Store(None), Limits())
    yield recorder
    recorder.close()


def test_only_who_is_concerned_is_replaced(recorder):
    log, crew = [], Crew(recorder)
    crew.assign({A: Post(1, lambda: Worker(log, "a1")), B: Post(1, lambda: Worker(log, "b1"))})
    crew.assign({A: Post(2, lambda: Worker(log, "a2")), B: Post(1, lambda: Worker(log, "b2"))})
    crew.assign({A: Post(2, lambda: Worker(log, "a3"))})
    assert log == ["start a1", "start b1", "stop a1", "start a2", "stop b1"]
    assert [worker.name for worker in crew.workers] == ["a2"]


def test_levels_of_a_removed_source_are_withdrawn(recorder):
    up = measures.ENGINE["up"]
    crew = Crew(recorder)
    crew.assign({A: Post(1, lambda: Worker([], "a"))})
    recorder.set_gauge(up, {"source": "a"}, 1)
    recorder.set_gauge(up, {"source": "b"}, 1)
    crew.assign({})
    assert samples(recorder, up.series_name) == {'source="b"': 1}


def test_nobody_begins_before_the_predecessor_has_ended(recorder):
    log, crew = [], Crew(recorder)
    crew.assign({A: Post(1, lambda: Worker(log, "a1", ends=False))})
    with pytest.raises(BusyError, match=r"^engine source a: still busy after 60 s, not replaced$"):
        crew.assign({A: Post(2, lambda: Worker(log, "a2"))})
    assert [worker.name for worker in crew.workers] == ["a1"]
    assert log == ["start a1", "stop a1"]


def test_the_crew_has_caught_up_when_everybody_has(recorder):
    crew = Crew(recorder)
    assert crew.caught_up
    slow = Worker([], "b", caught_up=False)
    crew.assign({A: Post(1, lambda: Worker([], "a")), B: Post(1, lambda: slow)})
    assert not crew.caught_up
    slow.caught_up = True
    assert crew.caught_up
