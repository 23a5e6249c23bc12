"""The recorded scripts, run through the model of the engine instead of a server."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from prefix_cache_exporter.simulator.engine import Engine
from prefix_cache_exporter.simulator.page import Page
from prefix_cache_exporter.simulator.requests import Family, Prompt, Request
from prefix_cache_exporter.simulator.rules import Rules
from prefix_cache_exporter.simulator.terms import Settings
from prefix_cache_exporter.tokens.blocks import Extras
from support.vllm_script import Call, Step, chunked, full, preempt

if TYPE_CHECKING:
    from collections.abc import Iterator

FULL = Settings(block_size=128, blocks=32768, max_model_len=2048)
SMALL = Settings(block_size=128, blocks=12, max_model_len=1024, blocks_overridden=True)
FINE = Settings(block_size=32, blocks=131072, max_model_len=2048, max_batched_tokens=256, block_size_set=True)

BEFORE_FIRST_TOKEN = 0  # the step that computes the prompt has begun, its output comes too late
NEVER_ARRIVED = -1  # the front end was still busy with it


@dataclass(frozen=True)
class Recording:
    """One recorded run.

    What the script does not determine stands here, as the recording has it or bounds it.

    `left_after`: how many tokens each client that hangs up lets pass. Where one client does, that is the recorded
    increase of generated tokens. Where three do at once (`07`), only their sum is recorded; the split is one under
    which the preemptions, and those of the finished requests, come out as recorded.

    `order`: which of several threads' requests came first. They came as started in all steps but these three, where the
    recorded cached tokens of each request rule that out; the order is the nearest one that gives them.
    """

    name: str
    settings: Settings
    steps: list[Step]
    left_after: dict[str, tuple[int, ...]]
    order: dict[str, tuple[int, ...]]

    @property
    def version(self) -> str:
        return self.name.partition("-")[0]


RECORDINGS = {
    recording.name: recording
    for recording in (
        Recording("0.12.0", FULL, full(128), {"12": (5,), "14": (BEFORE_FIRST_TOKEN,)}, {}),
        Recording("0.28.0", FULL, full(128), {"12": (1165,), "14": (1,)}, {"24": (1, 0)}),
        Recording("0.32.0", FULL, full(128), {"12": (3,), "14": (4,)}, {}),
        Recording("0.32.0-block32-chunked", FINE, chunked(), {"09": (NEVER_ARRIVED,)}, {}),
        Recording("0.12.0-preempt", SMALL, preempt(), {"07": (29, 29, 30)}, {}),
        Recording("0.28.0-preempt", SMALL, preempt(), {"07": (109, 224, 304)}, {}),
        Recording(
            "0.32.0-preempt",
            SMALL,
            preempt(),
            {"07": (238, 133, 416)},
            {"05": (0, 2, 3, 4, 1, 5), "06": (0, 1, 2, 3, 5, 4)},
        ),
    )
}


@dataclass(frozen=True)
class Ran:
    """One step as the model ran it."""

    step: str
    increases: dict[str, int]
    families: list[list[Request]]  # of each call; empty for calls that did not reach the engine


class Replay:
    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.page = Page(recording.version, recording.settings, "tiny")
        self.engine = Engine(recording.settings, Rules.of(recording.version), self.page)
        self._http("/tokenize", 4 if recording.settings is FULL else 0)  # to find the shared prefixes

    def run(self) -> Iterator[Ran]:
        for step in self.recording.steps:
            before = asdict(self.engine.counts)
            families = self._step(step)
            after = asdict(self.engine.counts)
            yield Ran(step.name, {name: after[name] - value for name, value in before.items()}, families)

    def _step(self, step: Step) -> list[list[Request]]:
        number = step.name[:2]
        self._http("/tokenize", step.tokenize)
        if step.reset:
            assert self.engine.reset_cache()
            self._http("/reset_prefix_cache", 1)
        leaving = iter(self.recording.left_after.get(number, ()))
        families: list[list[Request]] = []
        limits: dict[Request, int] = {}
        for call in step.calls:
            self._http("/tokenize", call.counted)
            limit = next(leaving) if call.hangs_up else None
            family = [] if call.refused or limit == NEVER_ARRIVED else self._requests(call)
            families.append(family)
            if limit is not None and family:
                limits[family[0]] = limit
            if not step.at_once:
                self._send(family, limits)
        if step.at_once:
            order = self.recording.order.get(number, range(len(families)))
            self._send([request for place in order for request in families[place]], limits)
        for call in step.calls:
            if self.recording.left_after.get(number, ())[:1] != (NEVER_ARRIVED,):
                self._http(call.path, 1, 400 if call.refused else 200)
        return families

    def _requests(self, call: Call) -> list[Request]:
        requests = []
        for tokens in call.prompts:
            prompt = Prompt.of(tokens, self.recording.settings.block_size, Extras(salt=call.salt))
            family = Family(call.n, call.n)
            requests += [
                Request("", prompt, call.max_tokens, lookup=call.lookup, sampling=child, family=family)
                for child in range(call.n)
            ]
        return requests

    def _send(self, requests: list[Request], limits: dict[Request, int]) -> None:
        for request in requests:
            self.engine.submit(request)
        while self.engine.busy:
            plan = self.engine.schedule()
            for request in plan.tokens:
                if limits.get(request) == BEFORE_FIRST_TOKEN and request.connected:
                    self.engine.abort(request)
            self.engine.complete(plan)
            for request, limit in limits.items():
                if request.connected and request.generated >= limit:
                    self.engine.abort(request)

    def _http(self, handler: str, times: int, status: int = 200) -> None:
        for _ in range(times):
            self.page.http(handler, status=status, seconds=0.01, received=100, sent=100)
