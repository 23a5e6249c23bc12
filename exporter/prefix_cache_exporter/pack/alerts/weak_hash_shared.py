"""Several trust groups share a cache whose block hash does not resist collisions on purpose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.labels import OTHER
from prefix_cache_exporter.pack import queries
from prefix_cache_exporter.pack.alerts import dashboards, text
from prefix_cache_exporter.pack.durations import Duration
from prefix_cache_exporter.pack.model import Alert
from prefix_cache_exporter.pack.records import exporter

if TYPE_CHECKING:
    from prefix_cache_exporter.pack.names import Names

NAME = "PrefixCacheWeakHashSharedAcrossNamespaces"


def alerts(names: Names) -> tuple[Alert, ...]:
    """Planes meet on the model: namespaces are known to the usage plane only, the hash to the engine plane only."""
    weak = exporter.weak_hashes(names)
    shared = (*("model",), *names.settings.labels.extra)
    one = f"model!={queries.quoted(OTHER)}"
    groups = queries.by("max", shared, exporter.namespaces(names).name)
    return (
        Alert(
            name=NAME,
            expr=f"{queries.select(weak, one)}\nand on ({', '.join(shared)}) ({groups} > 1)",
            labels=weak.labels,
            severity="warning",
            hold=Duration.parse("30m"),
            summary="Namespaces share a prefix cache whose hash does not resist collisions.",
            description=(
                'Source {{ $labels.source }} serves {{ $labels.model }} from {{ $value | printf "%.0f" }} of'
                f" {text.value(exporter.engines(names), text.TOKENS)} engines with the block hash"
                " {{ $labels.hash_algorithm }}, and usage records of that model name several namespaces. A collision"
                " would serve one namespace's KV blocks to another, in every revision."
            ),
            dashboard=dashboards.TRUST,
        ),
    )
