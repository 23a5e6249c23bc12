"""The demo's servers: one simulated vLLM per template, a gateway log each, and the traffic on them."""

from __future__ import annotations

import threading
from itertools import count
from typing import TYPE_CHECKING

from prefix_cache_exporter.simulator.live import LiveEngine, Pace
from prefix_cache_exporter.simulator.server import application
from prefix_cache_exporter.simulator.terms import Settings
from prefix_cache_exporter.simulator.usage import Origin, UsageLog, leading_fingerprint
from prefix_cache_exporter.tokens.blocks import Extras

from .traffic import arrivals

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from wsgiref.types import StartResponse, WSGIEnvironment

    from .prompts import Revision
    from .traffic import Arrival

MODEL = "demo/llama-8b"
BLOCK_SIZE = 16
_SETTINGS = Settings(
    block_size=BLOCK_SIZE, blocks=8_000, max_model_len=8_192, max_batched_tokens=8_192, residency_sample=0.1
)
_MOST_REQUESTS = 1_000_000
_PACE = Pace(step_seconds=0.02, prefill_tokens_per_second=30_000)


class Server:
    """One simulated server of one template, restarted with every release as a rolling update would.

    It is the WSGI application that answers whoever watches it.

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
        self.version = version
        self._log = UsageLog(log)
        self._traffic = arrivals(start, per_second, seed)
        self._next: Arrival = next(self._traffic)
        self._numbers = count(seed * _MOST_REQUESTS + 1)  # no two requests of the demo have one number
        self._lock = threading.Lock()
        self._engine = self._started()
        self._leaving: LiveEngine | None = None

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answers whoever watches it."""
        return application(self._engine)(environ, start_response)

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

    def close(self) -> None:
        """Closes the log."""
        self._log.close()

    def _started(self) -> LiveEngine:
        return LiveEngine(self.version, _SETTINGS, MODEL, _PACE, self._log.write, numbers=self._numbers)

    def _ask(self, arrival: Arrival) -> None:
        revision = self.revision
        tokens = arrival.tokens(revision)
        fingerprint = leading_fingerprint(tokens, BLOCK_SIZE)
        origin = Origin(revision.template, revision.name, arrival.namespace, leading_fingerprint=fingerprint)
        self._engine.ask(tokens, arrival.max_tokens, origin, Extras(salt=arrival.tenant), arrival.time)
