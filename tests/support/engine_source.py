"""One engine source whose server a test scripts, over a real recorder and the real maps."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from prefix_cache_exporter.config.model import EngineSource
from prefix_cache_exporter.engine.fetch import Fetched, FetchError
from prefix_cache_exporter.engine.maps import load_maps
from prefix_cache_exporter.engine.poller import EnginePoller
from prefix_cache_exporter.labels import Limits
from prefix_cache_exporter.recorder import Recorder
from prefix_cache_exporter.release import NOBODY_SAID, Release, Releases
from prefix_cache_exporter.state import Store
from support.clock import Clock
from support.page import samples

PAGES = Path(__file__).parents[1] / "pages"
TEXT = "text/plain; version=0.0.4; charset=utf-8"

maps = cache(load_maps)


@cache
def recorded(run: str) -> dict[str, bytes]:
    """The pages of a recorded run by step."""
    return {file.stem: file.read_bytes() for file in sorted((PAGES / run).glob("[0-9][0-9]_*.prom"))}


def expected(run: str) -> dict[str, dict[str, float | None]]:
    """Canonical increases by step, as recorded."""
    return json.loads((PAGES / "expected.json").read_text("utf-8"))[run]


def release(revision: str) -> Release:
    return Release("support", revision)


class Bench:
    """A poller on a bench: `page` and `says` are what the server answers, a string in their place is why it does not.

    Attributes:
        asked: what was asked of the server, in order.
        in_force: the release in force.
    """

    def __init__(self, store: Store | None = None, **settings):
        self.page: bytes | str = "refused"
        self.says: str = "0.32.0"
        self.content_type = TEXT
        self.in_force = NOBODY_SAID
        self.asked: list[str] = []
        self.clock, self.monotonic = Clock(1_795_974_000.0), Clock()
        self.source = EngineSource(name="vllm", url="http://127.0.0.1:8000", **settings)
        self.recorder = Recorder(store or Store(None), Limits(), hold_seconds=0, clock=self.clock)
        self.poller = EnginePoller(
            self.source, self.recorder, self, maps(), fetcher=self, clock=self.clock, monotonic=self.monotonic
        )

    def look(self) -> Releases:
        return Releases(self.in_force)

    def fetch(self) -> Fetched:
        self.asked.append("/metrics")
        if isinstance(self.page, str):
            raise FetchError(self.page, "as the test says")
        return Fetched(self.page, self.content_type)

    def version(self) -> str:
        self.asked.append("/version")
        if not self.says:
            raise FetchError("http_status", "status 404")
        return self.says

    def close(self) -> None:
        self.asked.append("close")

    def poll(self, page: bytes | str | None = None) -> str | None:
        """Polls once, five seconds after the last time."""
        if page is not None:
            self.page = page
        self.clock.advance(5)
        self.monotonic.advance(5)
        failure = self.poller.poll()
        self.recorder.commit()
        return failure

    def shown(self, name: str, **labels: str) -> dict[str, float]:
        """Samples of one of the engine's families, by the labels that are not among the given ones."""
        found = {}
        for text, value in samples(self.recorder, f"prefix_cache_engine_{name}").items():
            pairs = dict(pair.split("=", 1) for pair in text.split(",")) if text else {}
            pairs = {key: said.strip('"') for key, said in pairs.items()}
            if all(pairs.get(key) == said for key, said in labels.items()):
                rest = ",".join(f"{key}={said}" for key, said in pairs.items() if key not in {"source", *labels})
                found[rest] = value
        return found

    def total(self, name: str, **labels: str) -> float | None:
        """The sum of one of the engine's counters; None where it is not shown."""
        values = self.shown(f"{name}_total", **labels).values()
        return sum(values) if values else None
