"""What the words of a plain line mean, asked of the fast lane once for each combination of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from prefix_cache_exporter.usage import values
from prefix_cache_exporter.usage.record import NOTHING, UsageRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from prefix_cache_exporter.usage.intake import Row

    from .typed import Lane

    Words = tuple[Any, ...]

REMEMBERED = 4096
"""Combinations of words whose meaning is kept."""


class Samples:
    """Records without numbers, one for each combination of words and fields; the same object for the same ones.

    Args:
        lane: the fast lane.
        decode: a line to what the fast lane takes.
        protect: which of the asked-for fields may be kept, and as what.
    """

    def __init__(
        self, lane: Lane, decode: Callable[[bytes], Any], protect: Callable[[dict[str, str]], dict[str, str]]
    ) -> None:
        self._lane, self._decode, self._protect = lane, decode, protect
        self._known: dict[Words, UsageRecord | None] = {}
        self._varied: dict[Words, UsageRecord] = {}

    def of(
        self, words: Words, fields: Mapping[str, Any], numbers: Row, line: Callable[[], bytes]
    ) -> UsageRecord | None:
        """What lines of some words have in common; None where they are not plain.

        Args:
            words: that decide what a line means.
            fields: asked-for fields of this line.
            numbers: its numbers, by the columns.
            line: gives the line itself; only asked for words that are new.
        """
        found = {name: text for name, value in fields.items() if (text := values.word(value))}
        extra: Mapping[str, str] = self._protect(found) if found else NOTHING
        if words not in self._known:
            _keep(self._known, words, self._sample(line(), numbers, extra))
        sample = self._known[words]
        if sample is None or extra == sample.extra:
            return sample
        key = (words, *sorted(extra.items()))
        varied = self._varied.get(key)
        if varied is None:
            varied = msgspec.structs.replace(sample, extra=extra)
            _keep(self._varied, key, varied)
        return varied

    def clear(self) -> None:
        """Forgets everything."""
        self._known.clear()
        self._varied.clear()

    def _sample(self, line: bytes, numbers: Row, extra: Mapping[str, str]) -> UsageRecord | None:
        """What the fast lane says of a line, without its numbers; None where it says anything but the columns do."""
        one = self._lane.record(self._decode(line))
        if one is None or one.status != "success":
            return None
        said = (
            one.total_input_tokens,
            one.cache_read_tokens,
            one.cache_write_tokens,
            one.uncached_input_tokens,
            one.output_tokens,
            one.cache_write_by_ttl,
            one.time,
            one.ttft_seconds,
            one.duration_seconds,
        )
        if said != numbers or one.extra != extra:
            return None
        return UsageRecord(
            None, one.format, one.provider, one.model, None, one.status, one.quality, (), None, None, None, NOTHING,
            None, None, None, None, one.attempt, one.service_tier, one.batch, (), one.extra,
        )  # fmt: skip


def _keep(memory: dict[Words, Any], key: Words, value: Any) -> None:
    if len(memory) >= REMEMBERED:
        memory.clear()
    memory[key] = value
