"""Sources to show on a status page: a healthy engine with a usage log, one that is down, one that is hostile."""

from __future__ import annotations

from prefix_cache_exporter import measures
from prefix_cache_exporter.labels import Limits
from prefix_cache_exporter.recorder import Change, Recorder
from prefix_cache_exporter.state import Store
from prefix_cache_exporter.status.history import History
from prefix_cache_exporter.status.page import StatusPage
from support.clock import Clock

ENGINE, USAGE, EXPORTER = measures.ENGINE, measures.USAGE, measures.EXPORTER
START = 1_790_000_000.0
CAVEATS = {"preemption_recount": "Every resumed request counts its lookup again, so the lookup ratio errs high."}


class World:
    """A recorder, its history and its page under one clock."""

    def __init__(self) -> None:
        self.clock = Clock(START)
        self.recorder = Recorder(Store(None), Limits(labels={}), hold_seconds=0, clock=self.clock)
        self.history = History(self.recorder, clock=self.clock)
        self.page = StatusPage(
            self.recorder,
            self.history,
            version="0.1.0",
            links=[("Metrics", "/metrics")],
            describe_caveat=lambda id_: CAVEATS.get(id_, id_),
            clock=self.clock,
        )

    def html(self) -> str:
        return self.page.render().decode()

    def add(self, source: str, revision: str = "r41", **amounts: float) -> None:
        change = Change()
        labels = {"source": source, "provider": "vllm", "model": "m", "template": "t", "template_revision": revision}
        for name, amount in amounts.items():
            plane, _, id_ = name.partition("_")
            catalogue = ENGINE if plane == "engine" else USAGE
            change.add(catalogue[id_], labels, amount)
        self.recorder.apply(change)
        self.recorder.commit()
        self.history.look()

    def engine(self, source: str, *, up: bool = True, state: str = "verified", model: str = "org/base-7b") -> None:
        rec = self.recorder
        rec.set_gauge(ENGINE["up"], {"source": source}, float(up))
        rec.set_gauge(ENGINE["map_state"], {"source": source, "state": state}, 1)
        rec.set_gauge(ENGINE["last_success_timestamp_seconds"], {"source": source}, self.clock.now - 90 * (not up))
        rec.set_gauge(ENGINE["block_size_tokens"], {"source": source, "model": model}, 16)
        info = {
            "engine_version": "0.10.2",
            "metric_map": "vllm-0.10.2",
            "prefix_caching": "on",
            "hash_algorithm": "sha256",
        }
        rec.set_gauge(ENGINE["info"], {"source": source, "model": model, **info}, 1)

    def log(self, source: str, *, readable: bool = True) -> None:
        self.recorder.set_gauge(USAGE["log_readable"], {"source": source}, float(readable))
        self.recorder.set_gauge(USAGE["log_unread_bytes"], {"source": source}, 1234)
        self.recorder.set_gauge(USAGE["log_last_record_timestamp_seconds"], {"source": source}, self.clock.now - 3)

    def busy(self, source: str, minutes: int = 30) -> None:
        """Half an hour of the worked example: 45.9 % of prompt tokens, 75 % of the eligible prefix."""
        for minute in range(minutes):
            dip = 0.3 if minute in {12, 13} else 1
            self.add(
                source,
                engine_prompt_tokens=133_920,
                engine_cached_prompt_tokens=int(61_440 * dip),
                engine_lookup_tokens=133_920,
                engine_lookup_hit_tokens=int(61_440 * dip),
                engine_excluded_prompt_tokens=0,
                usage_reported_requests=100,
                usage_unreported_requests=5,
                usage_hit_requests=80,
                usage_prompt_tokens=133_920,
                usage_cached_prompt_tokens=61_440,
                usage_eligible_tokens=81_920,
                usage_eligible_cached_tokens=61_440,
                usage_input_cost=int(0.31 * measures.USAGE["input_cost"].scale),
                usage_counterfactual_input_cost=int(0.85 * measures.USAGE["input_cost"].scale),
            )
            self.clock.advance(60)

    def fail(self, source: str, reason: str, times: int) -> None:
        for _ in range(times):
            change = Change()
            change.add(ENGINE["poll_errors"], {"source": source, "reason": reason}, 1)
            self.recorder.apply(change)
            self.recorder.commit()
            self.history.look()
            self.clock.advance(5)


def story() -> World:
    """What a person sees on an ordinary day."""
    world = World()
    world.add("llama-a", engine_prompt_tokens=0)
    world.busy("llama-a")
    world.engine("llama-a")
    world.log("llama-a")
    world.recorder.set_gauge(ENGINE["caveat"], {"source": "llama-a", "caveat": "preemption_recount"}, 1)
    withheld = {"source": "llama-a", "measure": "block_lifetime_seconds", "reason": "flag_off"}
    world.recorder.set_gauge(ENGINE["withheld"], withheld, 1)
    release = {"source": "llama-a", "template": "support", "template_revision": "r42"}
    world.recorder.set_gauge(EXPORTER["release_in_force"], release, 1)
    world.fail("llama-b", "refused", 0)
    world.add("llama-b", engine_prompt_tokens=0)
    world.fail("llama-b", "refused", 4)
    world.engine("llama-b", up=False, state="unknown")
    return world
