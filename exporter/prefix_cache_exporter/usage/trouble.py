"""What is wrong with a line of a log, in words for whoever writes a map or looks into a source; none of its text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .record import Duplicate, Quarantined, Skipped

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .maps.model import UsageMap
    from .paths import Path
    from .record import Outcome, UsageRecord

_PROBLEMS = {
    "not_a_number": "no number",
    "not_whole": "no whole number",
    "negative": "a negative number",
    "too_large": "a number beyond any request",
}
_WORDS = {
    "cache_gt_input": "more cached tokens than input",
    "sum_ne_total": "the total is not input and output",
    "ttl_split_mismatch": "the writes by time to live are more than the writes",
    "uncached_mismatch": "the uncached tokens are not what reads and writes leave of the input",
    "modality_not_split": "audio, images or video of it are in no number of input or output",
    "part_incomplete": "a part of it has no input and was not added",
    "part_unclear": "a part of it may be in its numbers or not, and was not added",
}
_DERIVED = {
    "inclusive": "read as counting cached tokens into the input",
    "exclusive": "read as leaving cached tokens out of the input",
}


def trouble(outcome: Outcome, usage_map: UsageMap, why: str | None = None) -> str | None:
    """What is wrong with what a line came to; None where nothing is.

    Args:
        outcome: what it came to.
        usage_map: its map.
        why: why the map's paths find no input tokens in it, where that is known.
    """
    if isinstance(outcome, Skipped):
        return f"lost, {why or outcome.detail or outcome.reason}" if outcome.kind == "lost" else None
    if isinstance(outcome, Quarantined):
        return f"quarantined, {_anomaly(outcome.reason, usage_map)}"
    if isinstance(outcome, Duplicate):
        return None
    return _of_record(outcome, usage_map, f": {why}" if why else "")


def _of_record(record: UsageRecord, usage_map: UsageMap, why: str) -> str | None:
    if record.quality == "ambiguous":
        return "whether the input includes cached tokens cannot be told: set input_includes_cache for the source"
    if record.quality == "usage_missing":
        said = f"a success without token counts at {_at(usage_map.usage)}{why}"
        return said if record.status == "success" else None
    if record.quality == "partial" and record.total_input_tokens is None:
        return f"no input tokens at {_at(usage_map.tokens.get('input', ()))}{why}"
    odd = [_anomaly(name, usage_map) for name in record.anomalies]
    if odd and record.quality == "derived":
        inclusive = record.total_input_tokens is not None and record.uncached_input_tokens != record.total_input_tokens
        odd.append(_DERIVED["inclusive" if inclusive and usage_map.rule == "exclusive" else "exclusive"])
    return ", ".join(odd) or None


def _anomaly(name: str, usage_map: UsageMap) -> str:
    if name == "bad_time":
        return f"no time that can be read at {_at(usage_map.time)}"
    if name in _WORDS:
        return _WORDS[name]
    for problem, words in _PROBLEMS.items():
        field = name.removesuffix(f"_{problem}")
        if field != name:
            paths = usage_map.tokens.get(field, ())
            return f"{words} for {field.replace('_', ' ')} at {_at(paths)}" if paths else f"{words} in {field}"
    return name


def _at(paths: Iterable[Path]) -> str:
    return " or ".join(map(str, paths)) or "no path of the map"
