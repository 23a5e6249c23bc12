"""Reading what a recorder shows, the way a person would write it down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest

from prefix_cache_exporter.collector import LedgerCollector

if TYPE_CHECKING:
    from prefix_cache_exporter.recorder import Recorder


def page(recorder: Recorder) -> str:
    """The recorder's page in text form. A scrape, so it is noted as one."""
    registry = CollectorRegistry()
    registry.register(LedgerCollector(recorder))
    return generate_latest(registry).decode()


def samples(recorder: Recorder, name: str) -> dict[str, float]:
    """`labels text -> value` of the samples of one name."""
    found = {}
    for line in page(recorder).splitlines():
        head, _, value = line.rpartition(" ")
        if not line.startswith("#") and head.partition("{")[0] == name:
            found[head.partition("{")[2].removesuffix("}")] = float(value)
    return found
