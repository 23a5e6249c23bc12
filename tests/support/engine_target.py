"""Readings of one vLLM target, and what was counted between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prefix_cache_exporter.engine.deltas import deltas
from prefix_cache_exporter.engine.evaluate import Evaluator
from prefix_cache_exporter.engine.maps import load_maps
from prefix_cache_exporter.engine.page import read_page
from prefix_cache_exporter.engine.plan import select_plan
from prefix_cache_exporter.engine.snapshot import Snapshot
from support.vllm_pages import vllm_page

if TYPE_CHECKING:
    from prefix_cache_exporter.engine.delta import Delta
    from prefix_cache_exporter.engine.reading import Reading

_MAPS = load_maps()


class Target:
    """Readings of one target, as a poller takes them; the snapshot goes through its stored form every time."""

    def __init__(self, version: str = "0.32.0", **options: Any) -> None:
        self.version, self.options = version, options
        self.evaluator = Evaluator()
        self.snapshot: Snapshot | None = None

    def reading(self, body: bytes) -> Reading:
        """What a page says."""
        resolved = _MAPS.resolve(self.version)
        page = read_page(body, None, resolved.wanted)
        return self.evaluator.read(select_plan(resolved, page, **self.options), page)

    def see(self, body: bytes) -> Delta:
        """What was counted since the page before."""
        stored = None if self.snapshot is None else Snapshot.decode(self.snapshot.encode())
        assert stored == self.snapshot
        delta, self.snapshot = deltas(stored, self.reading(body))
        return delta

    def page(self, values: dict[str, float] | None = None, **options: Any) -> Delta:
        """The same of a page made of values."""
        return self.see(vllm_page(self.version, values, **options))


def counted(delta: Delta, *measures: str) -> dict[tuple[str, str], float]:
    """Increases by measure and rank, over their other labels; without those of 0."""
    found: dict[tuple[str, str], float] = {}
    for increase in delta.ledger():
        if increase.measure in measures and increase.amount:
            key = (increase.measure, increase.engine)
            found[key] = found.get(key, 0) + increase.amount
    return found


def lookups(*tokens: int | None, extra: str = "") -> bytes:
    """An excerpt without any start time: one rank per number."""
    lines = [
        f'vllm:prefix_cache_queries_total{{engine="{rank}"}} {n}\n' for rank, n in enumerate(tokens) if n is not None
    ]
    return ("".join(lines) + extra).encode()
