"""When a step is over, and what the sidecar has counted by then."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from urllib.request import urlopen

from prefix_cache_exporter.engine.page import read_page
from prefix_cache_exporter.measures import ENGINE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from e2e_vllm.client import Client
    from prefix_cache_exporter.engine.page import Page

COUNTED = (
    "prompt_tokens",
    "cached_prompt_tokens",
    "lookup_tokens",
    "lookup_hit_tokens",
    "generation_tokens",
    "preemptions",
    "excluded_prompt_tokens",
)
DOUBTS = ("anomalies", "map_mismatches", "poll_errors", "restarts")
"""What a server that runs on and is read through the map of its release moves none of."""
BUSY = ("vllm:num_requests_running", "vllm:num_requests_waiting")
PATIENCE, STILL = 60, 5


def settled(client: Client) -> str:
    """The server's page once nothing runs and two readings in a row say the same of vLLM.

    Where the last request was aborted, some releases go on saying that it runs: then it has to be the same for longer.

    Raises:
        TimeoutError: where that does not come.
    """
    before: list[str] = []
    since = time.monotonic()
    end = since + PATIENCE
    while time.monotonic() < end:
        page = client.metrics()
        lines = [line for line in page.splitlines() if line.startswith("vllm:")]
        families = read_page(page.encode(), None, BUSY).families.values()
        idle = not any(sample.value for family in families for sample in family.samples)
        if lines != before:
            before, since = lines, time.monotonic()
        elif idle or time.monotonic() - since > STILL:
            return page
        time.sleep(0.25)
    raise TimeoutError(f"the server did not come to rest in {PATIENCE} s")


def block_size(page: str) -> int:
    """As `vllm:cache_config_info` says."""
    info = read_page(page.encode(), None, ["vllm:cache_config_info"]).families["vllm:cache_config_info"]
    return int(info.samples[0].labels["block_size"])


def has_sides(page: str) -> bool:
    """Whether a page tells cached tokens; V0's does not."""
    return "prefix_cache_queries_total{" in page


class Sidecar:
    """The exporter's counters, from step to step.

    Args:
        port: on loopback.
    """

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/metrics"
        self._totals = self._rested()

    def increases(self) -> dict[str, float]:
        """What was counted since the last call, summed over all series of a measure. Absent where withheld."""
        totals = self._rested()
        increases = {measure: total - self._totals.get(measure, 0) for measure, total in totals.items()}
        self._totals = totals
        return increases

    def doubts(self, version: str) -> list[str]:
        """Why it does not wholly believe its server, which says it is of this version."""
        return doubts(self._page(), version)

    def _rested(self) -> dict[str, float]:
        """The totals once two more polls went by and then another changed nothing."""
        started = self._polls(self._page())
        end = time.monotonic() + PATIENCE
        before: dict[str, float] = {}
        while time.monotonic() < end:
            page = self._page()
            totals = _totals(page)
            if self._polls(page) >= started + 2 and totals == before:
                return totals
            before = totals if self._polls(page) >= started + 2 else {}
            time.sleep(0.25)
        raise TimeoutError(f"the sidecar did not poll twice in {PATIENCE} s")

    def _page(self) -> Page:
        with urlopen(self._url, timeout=10) as answer:
            return read_page(answer.read(), answer.headers["Content-Type"], [f.name for f in ENGINE.values()])

    @staticmethod
    def _polls(page: Page) -> float:
        family = page.families.get(ENGINE["polls"].name)
        return sum(sample.value for sample in family.samples) if family else 0


def doubts(page: Page, version: str) -> list[str]:
    """Why a sidecar's page does not wholly believe a server of a version, in words; empty where it does."""
    states = [labels["state"] for labels, value in _samples(page, "map_state") if value]
    versions = sorted({labels["engine_version"] for labels, _ in _samples(page, "info")})
    found = [] if states == ["verified"] else [f"map state: expected verified, got {', '.join(states) or None}"]
    if versions != [version]:
        found.append(f"engine version: expected {version}, got {', '.join(versions) or None}")
    counted = ((measure, labels, value) for measure in DOUBTS for labels, value in _samples(page, measure))
    return found + [
        f"{measure}: expected none, got {value:g} {labels.get('reason', '')}".rstrip()
        for measure, labels, value in counted
        if value
    ]


def _samples(page: Page, measure: str) -> list[tuple[Mapping[str, str], float]]:
    family = page.families.get(ENGINE[measure].name)
    return [(sample.labels, sample.value) for sample in family.samples] if family else []


def _totals(page: Page) -> dict[str, float]:
    families = {measure: page.families.get(ENGINE[measure].name) for measure in COUNTED}
    return {
        measure: sum(sample.value for sample in family.samples)
        for measure, family in families.items()
        if family and family.samples
    }
