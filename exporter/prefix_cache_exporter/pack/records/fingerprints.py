"""Distinct leading fingerprints beside the requests they came from.

A pod knows only its own: a fingerprint that every pod sees counts once per pod. So pods with too few requests in their
window, whose few fingerprints would look like one per request, are left out of both sides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.measures import USAGE
from prefix_cache_exporter.pack import queries
from prefix_cache_exporter.pack.model import Record

if TYPE_CHECKING:
    from prefix_cache_exporter.pack.model import Series
    from prefix_cache_exporter.pack.names import Names

_DISTINCT, _REQUESTS = USAGE["leading_fingerprints"], USAGE["leading_fingerprint_requests"]


def distinct(names: Names) -> Series:
    """Distinct leading fingerprints in the exporters' own windows."""
    return names.series("template_revision", _DISTINCT.name, "sum")


def requests(names: Names) -> Series:
    """Requests with a leading fingerprint in the same windows."""
    return names.series("template_revision", _REQUESTS.name, "sum")


def per_request(names: Names) -> Series:
    """Leading fingerprints per request: near 0 where a prefix is shared, near 1 where each request has its own."""
    return names.series(
        "template_revision",
        "prefix_cache_usage_leading_fingerprints_per_leading_fingerprint_requests",
        "ratio",
        "ratio",
    )


def records(names: Names) -> tuple[Record, ...]:
    """Rules of the fingerprint group."""
    settings, labels = names.settings, names.labels("template_revision")
    busy = (
        f"{queries.select(_REQUESTS.series_name, settings.selector)}"
        f" >= {queries.number(settings.floors.fingerprint_requests)}"
    )
    counted = f"{queries.select(_DISTINCT.series_name, settings.selector)} and ({busy})"
    return (
        Record(distinct(names), queries.total(labels, counted)),
        Record(requests(names), queries.total(labels, busy)),
        Record(per_request(names), queries.ratio(distinct(names).name, requests(names).name)),
    )
