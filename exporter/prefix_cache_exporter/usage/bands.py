"""What latency is told apart by: how long a prompt was, and how much of it came from a cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .record import UsageRecord

DEFAULT_BANDS = (512, 2048, 8192, 32768, 131072)
"""Upper edges of prompt-length bands, in tokens."""
MOSTLY = 0.5
"""Where the eligible prefix is not known, a request counts as a cache hit for latency from this share of its input."""


def band_names(edges: Sequence[int]) -> tuple[str, ...]:
    """Names of prompt-length bands, as `0-512`, `513-2048`, …, `over 131072`."""
    lows = [0, *(edge + 1 for edge in edges)]
    return (*(f"{low}-{edge}" for low, edge in zip(lows, edges, strict=False)), f"over {edges[-1] if edges else 0}")


def cache_state(record: UsageRecord, eligible: int | None) -> str:
    """How much of a request's reusable input came from a cache, for latency: `hit`, `partial`, `miss` or `unknown`.

    A hit is the whole eligible prefix where that is known, else at least half of the input.
    """
    read, total = record.cache_read_tokens, record.total_input_tokens
    if read is None or total is None:
        return "unknown"
    if read == 0:
        return "miss"
    whole = read >= eligible if eligible else read >= MOSTLY * total
    return "hit" if whole else "partial"
