from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from prefix_cache_exporter import measures
from prefix_cache_exporter.logs import fields

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from prefix_cache_exporter.recorder import Recorder

    from .loop import Worker

_log = logging.getLogger(__name__)

_PATIENCE_SECONDS = 60.0
"""How long a replaced worker may take to finish its step; every step has a deadline of its own below this."""
_BY_SOURCE = tuple(
    family
    for family in measures.FAMILIES.values()
    if family.kind in {"gauge", "info"} and "source" in family.labels and family.plane != "exporter"
)


class BusyError(RuntimeError):
    """A worker that did not end, so that its successor may not begin.

    Attributes:
        source: whose worker.
    """

    def __init__(self, place: Place) -> None:
        self.source = place.source
        super().__init__(f"{place.plane} source {place.source}: still busy after {_PATIENCE_SECONDS:g} s, not replaced")


class Place(NamedTuple):
    """One plane of one source."""

    plane: str
    source: str


@dataclass(frozen=True, slots=True)
class Post:
    """What a worker is needed for.

    Attributes:
        wants: everything its work depends on; a worker is replaced when it changes.
        hire: makes the worker.
    """

    wants: Hashable | object
    hire: Callable[[], Worker]


class Crew:
    """The workers, one per plane of a source: begun, replaced and ended as the configuration asks."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._at_work: dict[Place, tuple[object, Worker]] = {}

    @property
    def workers(self) -> list[Worker]:
        """Everybody at work."""
        return [worker for _, worker in list(self._at_work.values())]

    @property
    def caught_up(self) -> bool:
        """Whether everything that was there at the start has been counted."""
        return all(worker.caught_up for worker in self.workers)

    def assign(self, posts: Mapping[Place, Post]) -> None:
        """Brings the crew to what is asked for, by source. Who is not concerned goes on undisturbed.

        A successor begins only when its predecessor has ended: two that count the same thing would count it twice.

        Raises:
            BusyError: where a worker does not end; it goes on being the one.
        """
        for place, (wants, worker) in list(self._at_work.items()):
            if place in posts and posts[place].wants == wants:
                continue
            worker.stop()
            if not worker.join(_PATIENCE_SECONDS):
                raise BusyError(place)
            del self._at_work[place]
            for family in _BY_SOURCE:
                if family.plane in {place.plane, "release"}:
                    self._recorder.drop_gauges(family, source=place.source)
            if place not in posts:
                _log.info("source removed", extra=fields(plane=place.plane, source=place.source))
        for place, post in posts.items():
            if place not in self._at_work:
                worker = post.hire()
                self._at_work[place] = (post.wants, worker)
                # Said first: what its first step has to say belongs below.
                _log.info("source added", extra=fields(plane=place.plane, source=place.source))
                worker.start()
