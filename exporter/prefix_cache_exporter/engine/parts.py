"""Numerators that are a part of their denominator: over an interval they gain no more than it does.

An engine adds a step's lookups and right after them its hits, which are no more
(https://github.com/vllm-project/vllm/blob/v0.12.0/vllm/v1/metrics/loggers.py, `PrometheusStatLogger.record`). A page is
made counter by counter beside that, so that it may show the hits of a step whose lookups come with the next page. An
interval with more hits than lookups is therefore carried over and judged together with the next one. What is still more
than its whole then was never counted so, and neither side of it can be used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.measures import RATIOS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .delta import EngineDelta

EXCEEDS = "part_exceeds_whole"
"""Why both sides of a ratio are withheld."""
PAIRS = tuple((ratio.numerator[0], ratio.denominator[0]) for ratio in RATIOS if ratio.together)
"""Measures that are a part, and their wholes."""


def settle_parts(
    delta: EngineDelta, held: Mapping[str, float], *, restarted: bool, final: bool
) -> tuple[dict[str, float], int]:
    """Withholds parts that exceed their wholes, and adds what was carried over to what it explains.

    Args:
        delta: of one interval; changed in place.
        held: by measure, what was carried over from the interval before.
        restarted: whether the engine restarted in between: what would have explained it is lost.
        final: whether no interval follows that could explain anything.

    Returns:
        What to carry over, and how many pairs were given up.
    """
    carried: dict[str, float] = {}
    given_up = 0
    for pair in PAIRS:
        part, whole = pair
        was_held = part in held
        if was_held and (restarted or not delta.withheld.keys().isdisjoint(pair)):
            was_held, given_up = False, given_up + 1
        sums: dict[str, float] = {}
        for measure in pair:
            amount = delta.total(measure)
            if amount is not None:
                sums[measure] = amount + (held[measure] if was_held else 0)
        if len(sums) < len(pair):
            carried.update({measure: held[measure] for measure in pair if was_held})
        elif sums[part] > sums[whole]:
            for measure in pair:
                delta.withhold(measure, EXCEEDS)
            if was_held or final:
                given_up += 1
            else:
                carried.update(sums)
        elif was_held:
            delta.increases.update({(measure, "", ""): amount for measure, amount in sums.items()})
    return carried, given_up
