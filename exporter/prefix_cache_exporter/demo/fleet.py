"""The demo's servers: one simulated vLLM per template, a gateway log each, and the traffic on them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from prefix_cache_exporter.simulator.engine import Settings
from prefix_cache_exporter.simulator.live import LiveEngine, Pace
from prefix_cache_exporter.simulator.server import application
from prefix_cache_exporter.simulator.usage import Origin, UsageLog
from prefix_cache_exporter.tokens.blocks import Extras

from .traffic import arrivals

if TYPE_CHECKING:
    from pathlib import Path

    from prefix_cache_exporter.web.http import Request, Response

    from .prompts import Revision
    from .traffic import Arrival

MODEL = "demo/llama-8b"
_TICK_SECONDS = 0.05
_SETTINGS = Settings(block_size=16, blocks=8_000, max_model_len=8_192, max_batched_tokens=8_192, blocks_overridden=True)
_PACE = Pace(step_seconds=0.02, prefill_tokens_per_second=30_000)


class Server:
    """One simulated server of one template, restarted with every release as a rolling update would.

    Args:
        version: the vLLM release that it plays.
        revision: what is released first.
        log: where its gateway writes.
        per_second: requests a second.
        seed: of its traffic.
        start: when its first request may come, in seconds since 1970.
    """

    def __init__(
        self, version: str, revision: Revision, log: Path, *, per_second: float, seed: int, start: float
    ) -> None:
        self.revision = revision
        self._version = version
        self._log = UsageLog(log)
        self._traffic = arrivals(start, per_second, seed)
        self._next: Arrival = next(self._traffic)
        self._lock = threading.Lock()
        self._engine = self._started()
        self._leaving: LiveEngine | None = None

    def release(self, revision: Revision) -> None:
        """Starts anew with an empty cache; what the old one was computing, it finishes."""
        with self._lock:
            self.revision = revision
            self._leaving, self._engine = self._engine, self._started()

    def advance(self, now: float) -> None:
        """Lets traffic come and the engine work until `now`."""
        with self._lock:
            while self._next.time <= now:
                self._ask(self._next)
                self._next = next(self._traffic)
            self._engine.advance(now)
            if self._leaving is not None:
                self._leaving.advance(now)

    def answer(self, request: Request) -> Response:
        """What the server answers to whoever watches it."""
        return application(self._engine).answer(request)

    def close(self) -> None:
        """Closes the log."""
        self._log.close()

    def _started(self) -> LiveEngine:
        return LiveEngine(self._version, _SETTINGS, MODEL, _PACE, self._log.write)

    def _ask(self, arrival: Arrival) -> None:
        revision = self.revision
        origin = Origin(revision.template, revision.name, arrival.namespace)
        salted = Extras(salt=arrival.tenant)
        self._engine.ask(arrival.tokens(revision), arrival.max_tokens, origin, salted, arrival.time)
