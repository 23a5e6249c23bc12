"""From a usage source's configuration to what reads its lines: one by one, and whole blocks of plain ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .intake import Intake
from .lane.blocks import Blocks
from .namespaces import Protector
from .paths import parse_path

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Set as AbstractSet
    from typing import Any

    from prefix_cache_exporter.config.model import UsageSource

    from .intake import Row
    from .lane.recent import Memory
    from .lane.sums import Bounds
    from .maps.model import UsageMap
    from .record import UsageRecord


class Readers(NamedTuple):
    """Both ways in which lines of one source are read; a line comes to the same record by either."""

    intake: Intake
    blocks: Blocks


def build_readers(
    source: UsageSource,
    usage_map: UsageMap,
    *,
    key: bytes,
    label: Callable[[UsageRecord, Row, AbstractSet[str]], tuple[Any, Bounds]],
    memory: Memory | None = None,
) -> Readers:
    """Puts together what reads the lines of one source.

    Args:
        source: its configuration.
        usage_map: the map of its format.
        key: keys the hashes of tenants and ids; empty where there is none.
        label: which plain records need not be told apart; see `Blocks`.
        memory: remembers the ids of what comes in blocks, instead of a memory that ends with the process.
    """
    protect = Protector(allow=source.namespaces.allow, buckets=source.namespaces.buckets, key=key)
    intake = Intake(
        usage_map,
        input_includes_cache=source.input_includes_cache,
        fields=source.fields,
        provider=source.provider,
        models=source.models,
        protect=protect,
        hash_key=key,
        keep_raw=source.quarantine_file is not None,
        settle_seconds=source.settle_seconds,
        dedupe_records=source.dedupe_records,
    )
    blocks = Blocks(
        usage_map,
        intake.lane,
        fields={name: parse_path(path) for name, path in source.fields.items()},
        protect=protect,
        dedupe_records=source.dedupe_records,
        memory=memory,
        label=label,
    )
    return Readers(intake, blocks)
