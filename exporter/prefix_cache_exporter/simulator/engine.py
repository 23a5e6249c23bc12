"""A model of vLLM's scheduler and block cache: exact in what it counts, ignorant of what a model would say.

One step mirrors the V1 scheduler without asynchronous scheduling or speculation: running requests first, in order of
arrival; where blocks run out, the youngest is preempted and computes everything again later; waiting requests follow
only in steps without preemption, first come first served
(https://github.com/vllm-project/vllm/blob/v0.12.0/vllm/v1/core/sched/scheduler.py).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from .pool import BlockPool
from .residency import Residency
from .terms import Counts, Plan, TooLongError

if TYPE_CHECKING:
    from .requests import Request
    from .rules import Rules
    from .terms import Observer, Settings


class Engine:
    """One engine: a queue, a batch, a block pool and counters.

    A step has two halves, `schedule` and `complete`, because clients hang up while a step is computed: the front end
    forgets them at once, the scheduler only with its next step.

    Args:
        settings: sizes.
        rules: behaviour of the release.
        observer: told of latencies and sizes; none for counting only.

    Attributes:
        counts: counters since the start.
        pool: the KV blocks.
        running: requests in the batch, eldest first.
        waiting: requests without blocks, next first.
    """

    def __init__(self, settings: Settings, rules: Rules, observer: Observer | None = None) -> None:
        self.settings = settings
        self.rules = rules
        self.counts = Counts()
        self._residency = None
        if observer and settings.residency_sample is not None:
            self._residency = Residency(settings.residency_sample, observer.evicted)
        self.pool = BlockPool(settings.blocks, unhashed_first=rules.unhashed_first, residency=self._residency)
        self.running: list[Request] = []
        self.waiting: deque[Request] = deque()
        self._observer = observer
        self._leaving: list[Request] = []

    @property
    def busy(self) -> bool:
        """Whether a step would do anything."""
        return bool(self.running or self.waiting)

    def submit(self, request: Request, now: float = 0.0) -> None:
        """Queues a request.

        Raises:
            TooLongError: the prompt leaves no room for one token.
        """
        if request.prompt.length >= self.settings.max_model_len:
            raise TooLongError(request.prompt.length, self.settings.max_model_len - 1)
        request.arrived = now
        self.waiting.append(request)

    def abort(self, request: Request) -> None:
        """The client has hung up: what the request still gives is not counted, and it leaves before the next step."""
        request.connected = False
        self._leaving.append(request)

    def reset_cache(self) -> bool:
        """Forgets all cached prefixes; refused while requests hold blocks. Counters stay."""
        return self.pool.reset()

    def step(self, now: float = 0.0) -> Plan:
        """A whole step."""
        plan = self.schedule(now)
        self.complete(plan, now)
        return plan

    def run(self) -> None:
        """Steps until nothing is left to do."""
        while self.busy:
            self.step()

    def schedule(self, now: float = 0.0) -> Plan:
        """Decides what the next step computes, and takes the blocks for it."""
        if self._residency:
            self._residency.now = now
        self._let_go()
        plan = Plan()
        budget = self._schedule_running(plan)
        if not plan.preempted:
            self._admit(plan, budget, now)
        for request, tokens in plan.tokens.items():
            request.computed += tokens
        return plan

    def complete(self, plan: Plan, now: float = 0.0) -> list[Request]:
        """Takes in what the step computed and gives the requests that are finished by it."""
        finished = []
        drawn = prompt = generated = 0
        for request in plan.tokens:
            if request.computed < request.tokens:
                continue  # a prompt computed in part gives no token yet
            drawn += 1
            request.generated += 1
            if request.connected:
                prompt += self._deliver(request, now)
                generated += 1
            if request.generated >= request.max_tokens or request.tokens >= self.settings.max_model_len:
                finished.append(request)
        self.counts.prompt += prompt
        self.counts.generated += generated
        self.counts.steps += bool(drawn)
        if drawn and self._observer:
            self._observer.step(prompt + generated)
        for request in finished:
            self.running.remove(request)
            self._free(request)
            if request.connected:
                self._finish(request, now)
        return finished

    def _schedule_running(self, plan: Plan) -> int:
        budget = self.settings.max_batched_tokens
        index = 0
        while index < len(self.running) and budget:
            request = self.running[index]
            tokens = min(request.tokens - request.computed, budget)
            while not (room := self._allocate(request, tokens)):
                victim = self.running.pop()
                self._preempt(victim)
                plan.preempted.append(victim)
                if victim is request:
                    break
            if not room:
                break
            plan.tokens[request] = tokens
            budget -= tokens
            index += 1
        return budget

    def _admit(self, plan: Plan, budget: int, now: float) -> None:
        while self.waiting and budget and len(self.running) < self.settings.max_running:
            request = self.waiting[0]
            hit = self._look_up(request)
            tokens = min(request.tokens - len(hit) * self.settings.block_size, budget)
            if not self._allocate(request, tokens, hit):
                break
            if self.rules.lookups_counted == "admission":
                self._count_lookup(request, hit)
            self.waiting.popleft()
            self.running.append(request)
            request.computed = len(hit) * self.settings.block_size
            if request.scheduled is None:
                request.scheduled, request.cached = now, request.computed
            plan.tokens[request] = tokens
            budget -= tokens

    def _look_up(self, request: Request) -> list[int]:
        if not request.lookup:
            return []
        hit = self.pool.find(request.hashes, (request.tokens - 1) // self.settings.block_size)
        if self.rules.lookups_counted == "lookup":
            self._count_lookup(request, hit)
        return hit

    def _count_lookup(self, request: Request, hit: list[int]) -> None:
        if request.lookup and not request.preemptions:
            self.counts.lookup += request.tokens
            self.counts.lookup_hit += len(hit) * self.settings.block_size

    def _allocate(self, request: Request, tokens: int, hit: list[int] | None = None) -> bool:
        """Takes the blocks for so many more tokens, all or none; full ones can be hit from this moment on."""
        hit = hit or []
        pool, size = self.pool, self.settings.block_size
        target = request.computed + len(hit) * size + tokens
        held = len(request.blocks) + len(hit)
        missing = -(-target // size) - held
        if (free := pool.free) is not None:
            needed = missing
            if hit or not request.blocks:
                if self.rules.whole_prompt_must_fit:
                    needed = -(-request.tokens // size) - held
                needed += pool.idle(hit)
            if needed > free:
                return False
        if hit:
            pool.hold(hit)
            request.blocks += hit
            request.published = len(hit)
        if missing > 0:
            request.blocks += pool.allocate(missing)
        full = min(target, request.tokens) // size
        if full > request.published:
            request.hash_generated(size)
            pool.publish(request.blocks[request.published : full], request.hashes[request.published : full])
            request.published = full
        return True

    def _preempt(self, request: Request) -> None:
        self._free(request)
        request.computed = 0
        request.preemptions += 1
        request.untold_preemptions += 1
        self.waiting.appendleft(request)

    def _free(self, request: Request) -> None:
        self.pool.release(request.blocks)
        request.blocks = []
        request.published = 0

    def _let_go(self) -> None:
        for request in self._leaving:
            if request in self.running:
                self.running.remove(request)
                self._free(request)
            elif request in self.waiting:
                self.waiting.remove(request)
        self._leaving.clear()

    def _deliver(self, request: Request, now: float) -> int:
        """Counts one token at the front end and gives the prompt tokens that its first one brings."""
        self.counts.preemptions += request.untold_preemptions
        request.untold_preemptions = 0
        since, request.last_token = request.last_token, now
        if request.generated > 1:
            if self._observer:
                self._observer.next_token(now - since)
            return 0
        request.first_token = now
        in_cache = min(request.published * self.settings.block_size, request.prompt.length)
        request.created = max(in_cache - request.cached, 0)
        self.counts.cached += request.cached
        if self._observer:
            self._observer.first_token(request, now - request.arrived)
        return request.prompt.length

    def _finish(self, request: Request, now: float) -> None:
        self.counts.finished += 1
        family = request.family
        family.open -= 1
        family.longest = max(family.longest, request.generated)
        if self._observer:
            self._observer.finished(request, now)
