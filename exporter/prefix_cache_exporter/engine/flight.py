"""What requests in flight can explain of the difference between lookups and counted prompt tokens."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .delta import PROMPT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .reading import EngineKey, Reading

_FIRST_TOKENS, _LENGTHS = "time_to_first_token_seconds", "finished_prompt_tokens"


def requests_in_flight(reading: Reading, key: EngineKey) -> float:
    """Requests in flight, as far as the page says."""
    gauges = reading.gauges.get(key, {})
    levels = [gauges.get(name) for name in ("running_requests", "waiting_requests")]
    return sum(level for level in levels if isinstance(level, float))


def explained_in_flight(reading: Reading, key: EngineKey) -> float:
    """Prompt tokens that may have been looked up without being counted as prompt tokens yet, or ever.

    As many mean prompts as there are requests in flight, or one of the longest, which may also have been aborted
    before its first token.
    """
    requests = requests_in_flight(reading, key)
    prompt = first = 0.0
    lengths: dict[float, float] = {}
    for group, values in reading.groups.items():
        if group.key != key:
            continue
        for series, value in values.items():
            if reading.reason(series.measure, key):
                continue
            if series.measure == PROMPT:
                prompt += value
            elif series.measure == _FIRST_TOKENS and series.part == "+Inf":
                first += value
            elif series.measure == _LENGTHS and series.part != "sum":
                edge = float(series.part)
                lengths[edge] = lengths.get(edge, 0.0) + value
    if requests and not prompt:  # none has had its first token: whatever was looked up is in flight
        return math.inf
    mean = prompt / first if first else 0.0
    return max(requests * mean, _longest(lengths))


def _longest(lengths: Mapping[float, float]) -> float:
    """The upper bound of the longest prompts in a histogram of lengths; of those beyond all bounds, the last bound."""
    bounds = sorted(edge for edge in lengths if edge != math.inf)
    whole = max(lengths.values(), default=0.0)
    if not whole or not bounds:
        return 0.0
    return next((edge for edge in bounds if lengths[edge] >= whole), bounds[-1])
