"""From a usage source's configuration to its worker."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from .count import Counting
from .count_many import label_sums
from .earlier import look_back
from .eligible import Eligibility
from .follow import Follower
from .ingest import LOG, MERGE, Ingest, cursor_kind
from .lane.remember import Durable
from .quarantine import QuarantineFile
from .readers import build_readers
from .sketch import Window

if TYPE_CHECKING:
    from collections.abc import Callable

    from prefix_cache_exporter.config.model import UsageSource
    from prefix_cache_exporter.recorder import Recorder
    from prefix_cache_exporter.release import Release

    from .inventory import Inventory
    from .maps.model import UsageMap
    from .prices.book import PriceBook


def build_ingest(
    source: UsageSource,
    *,
    usage_map: UsageMap,
    key: bytes = b"",
    recorder: Recorder,
    release: Callable[[], Release],
    prices: PriceBook | None = None,
    inventory: Inventory | None = None,
    find: Callable[[str], UsageMap | None] = lambda _: None,
    clock: Callable[[], float] = time.time,
    monotonic: Callable[[], float] = time.monotonic,
) -> Ingest:
    """Puts the worker of one usage source together.

    Args:
        source: its configuration.
        usage_map: the map of its format.
        key: keys the hashes of tenants and ids.
        recorder: takes its numbers, and has its positions.
        release: gives the release in force.
        prices: prices of tokens; None where costs are not wanted.
        inventory: the registered shared prefixes.
        find: gives the map of a format that the source had before; None where there is none any more.
        clock: seconds since 1970.
        monotonic: seconds that never go back.
    """
    fingerprints = Window(source.fingerprint_window_seconds) if "leading_fingerprint" in source.fields else None
    logs, parts = (recorder.cursors(cursor_kind(kind, source.name)) for kind in (LOG, MERGE))
    earlier = look_back(source, logs, parts, find)
    ids = Durable(source.dedupe_records, key, parts)
    counting = Counting(
        release=release,
        prices=prices,
        eligibility=Eligibility(inventory, block_size_tokens=source.block_size_tokens),
        bands=source.ttft_bands,
    )
    readers = build_readers(source, usage_map, key=key, label=partial(label_sums, counting), memory=ids)
    return Ingest(
        source.name,
        follower=Follower(
            source.paths,
            logs,
            line_limit=source.line_limit_bytes,
            clock=monotonic,
            resumed=earlier.resumed,
        ),
        intake=readers.intake,
        earlier=earlier,
        ids=ids,
        blocks=readers.blocks,
        counting=counting,
        recorder=recorder,
        fingerprints=fingerprints,
        quarantine=None if source.quarantine_file is None else QuarantineFile(source.quarantine_file),
        clock=clock,
        monotonic=monotonic,
    )
