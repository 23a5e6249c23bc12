"""An engine in time: requests come when they come, a step takes as long as its tokens, the gateway writes its log."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from .engine import Engine
from .page import Page
from .requests import Prompt, Request
from .rules import Rules
from .usage import Origin, usage_line, usage_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from prefix_cache_exporter.tokens.blocks import Extras

    from .terms import Plan, Settings

_BYTES_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast the engine computes.

    Attributes:
        step_seconds: what every step takes.
        prefill_tokens_per_second: what each token of a step adds to that.
    """

    step_seconds: float = 0.02
    prefill_tokens_per_second: float = 20_000.0

    def seconds(self, plan: Plan) -> float:
        """How long a step takes."""
        return self.step_seconds + sum(plan.tokens.values()) / self.prefill_tokens_per_second


@dataclass(frozen=True, slots=True)
class _Step:
    plan: Plan
    end: float


class LiveEngine:
    """A server as its clients and its gateway see it. All methods may be called from several threads.

    Time is what the caller says it is, so that a test can run an hour in a moment.

    Args:
        version: the vLLM release.
        settings: sizes of the engine.
        model: the served model's name.
        pace: how fast it computes.
        log: takes the gateway's lines.
        numbers: what requests are told apart by; a server that follows another goes on with its numbers.

    Raises:
        UnknownVersionError: a release that there are no facts about.
    """

    def __init__(
        self,
        version: str,
        settings: Settings,
        model: str,
        pace: Pace,
        log: Callable[[bytes], object],
        *,
        numbers: Iterator[int] | None = None,
    ) -> None:
        self.version = version
        self._model, self._pace, self._log = model, pace, log
        self._page = Page(version, settings, model)
        self._rules = Rules.of(version)
        self._engine = Engine(settings, self._rules, self._page)
        self._numbers = numbers or count(1)
        self._origins: dict[Request, Origin] = {}
        self._step: _Step | None = None
        self._now = 0.0
        self._lock = threading.Lock()

    @property
    def settings(self) -> Settings:
        """Sizes of the engine."""
        return self._engine.settings

    def ask(self, tokens: Sequence[int], max_tokens: int, origin: Origin, extras: Extras, now: float) -> None:
        """A request arrives.

        Args:
            tokens: the rendered prompt.
            max_tokens: tokens to generate.
            origin: what the gateway knows.
            extras: salt, adapter and media.
            now: seconds since 1970.

        Raises:
            TooLongError: the prompt leaves no room for one token.
        """
        request = Request(f"{next(self._numbers):08d}", Prompt.of(tokens, self.settings.block_size, extras), max_tokens)
        with self._lock:
            self._advance(now)
            self._engine.submit(request, now)
            self._origins[request] = origin

    def advance(self, now: float) -> None:
        """Lets the engine work until `now`."""
        with self._lock:
            self._advance(now)

    def metrics(self) -> bytes:
        """The body of `/metrics`."""
        with self._lock:
            return self._page.render(self._engine)

    def reset_cache(self) -> bool:
        """Forgets all cached prefixes; refused while requests hold blocks."""
        with self._lock:
            return self._engine.reset_cache()

    def _advance(self, now: float) -> None:
        while True:
            if self._step is None:
                if not self._engine.busy:
                    self._now = now
                    return
                plan = self._engine.schedule(self._now)
                self._step = _Step(plan, self._now + self._pace.seconds(plan))
            if self._step.end > now:
                return
            step, self._step = self._step, None
            self._now = step.end
            for request in self._engine.complete(step.plan, step.end):
                self._finish(request)

    def _finish(self, request: Request) -> None:
        origin = self._origins.pop(request)
        family = [request]
        line = usage_line(family, usage_of(family, self._rules), origin, self._model, self._now)
        self._page.http(
            "/v1/chat/completions",
            status=200,
            seconds=self._now - request.arrived,
            received=request.prompt.length * _BYTES_PER_TOKEN,
            sent=len(line),
        )
        self._log(line)
