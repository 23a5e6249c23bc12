"""Eligible tokens of a record: those of its registered shared prefix that could have been reused."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from .reuse import Rule, find_rule, shipped_rules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .intake import Row
    from .inventory import Inventory
    from .record import UsageRecord

REASONS = (
    "not_registered",
    "bad_eligible_tokens",
    "longer_than_input",
    "block_size_unknown",
    "minimum_unknown",
    "minimum_disputed",
)
"""Why a record's eligible tokens are not known; such a record is outside effectiveness."""
_REMEMBERED = 4096
_LONGEST_NUMBER = 15


class Eligibility:
    """Decides eligible tokens by the record's own field, else by the inventory, and by what the provider can reuse.

    A length that the record states itself is floored to whole blocks and is 0 below the minimum like any other; where
    no rule is known for its provider, it is believed. A length from the inventory is not: a prefix that may or may not
    reach an unknown minimum is neither eligible nor not.

    Below a minimum nothing is ever reused, so eligible tokens are 0 there, not the minimum: those tokens could not
    have been saved, and counting them would blame the cache.
    """

    def __init__(
        self, inventory: Inventory | None = None, *, block_size_tokens: int | None = None, rules: tuple[Rule, ...] = ()
    ) -> None:
        """Takes the inventory, the configured block size of the source's engine, and rules in place of the shipped."""
        self._inventory = inventory
        self._block_size = block_size_tokens
        self._given = rules
        self._known: dict[tuple[str, str | None], Rule | None] = {}
        self._lengths: dict[tuple[str | None, str | None, str | None], int | None] = {}

    @cached_property
    def _rules(self) -> tuple[Rule, ...]:
        """The rules, in the order in which they are asked; most logs speak of no shared prefix and ask none."""
        return (*(self._inventory.rules if self._inventory else ()), *(self._given or shipped_rules()))

    @cached_property
    def _recomputed(self) -> int:
        return max((rule.recomputed for rule in self._rules), default=0)

    @cached_property
    def dated(self) -> bool:
        """Whether what can be reused depends on when a request was made."""
        return any(rule.dated for rule in self._rules)

    def eligible(
        self, record: UsageRecord, template: str | None = None, template_revision: str | None = None
    ) -> int | None:
        """Eligible tokens, or None where they are not known; see `decide`."""
        found = self.decide(record, template, template_revision)
        return None if isinstance(found, str) else found

    def decide(
        self, record: UsageRecord, template: str | None = None, template_revision: str | None = None
    ) -> int | str:
        """Eligible tokens, or the reason why they are not known.

        Args:
            record: a settled record; what it says about its template comes first.
            template: the template in force, for records that say nothing.
            template_revision: its revision in force, likewise.
        """
        shared = self._shared(record, template, template_revision)
        if isinstance(shared, str):
            return shared
        return self._decided(shared, record.total_input_tokens, record, record.time)

    def _shared(self, record: UsageRecord, template: str | None, template_revision: str | None) -> int | str:
        """The length of a record's shared prefix, or why it is not known."""
        stated = record.extra.get("eligible_tokens")
        if stated is not None:
            number = _number(stated)
            return "bad_eligible_tokens" if number is None else number
        own = record.extra.get("template", template)
        if own != template:
            template_revision = None  # that of another template says nothing
        found = self._registered(own, record.extra.get("template_revision", template_revision), record.model)
        return "not_registered" if found is None else found

    def _decided(self, shared: int, total: int | None, record: UsageRecord, time: float | None) -> int | str:
        if total is not None and shared > total:
            return "longer_than_input"
        found = self.reusable(shared, total, record.provider, record.model, time)
        return shared if isinstance(found, str) and "eligible_tokens" in record.extra else found

    def concerns(self, sample: UsageRecord, template: str | None, template_revision: str | None) -> bool:
        """Whether `sums` can give anything but zeros for records like one."""
        return not isinstance(self._shared(sample, template, template_revision), str)

    def sums(
        self,
        sample: UsageRecord,
        rows: Sequence[Row],
        template: str | None = None,
        template_revision: str | None = None,
    ) -> tuple[int, int, int]:
        """Sums over plain records that report cached tokens and differ in nothing but their rows.

        Returns:
            how many have a known eligible prefix, its tokens, and the cached ones within it, as `eligible` of each.
        """
        shared = self._shared(sample, template, template_revision)
        if isinstance(shared, str):
            return 0, 0, 0
        requests = tokens = cached = 0
        known: dict[tuple[int, float | None], int | str] = {}
        for row in rows:
            total, read = row[0], row[1] or 0
            # Once the tokens that are always computed lie behind the prefix, a prompt's length changes nothing.
            key = (total if total < shared + self._recomputed else -1, row[6] if self.dated else None)
            found = known.get(key)
            if found is None:
                found = known[key] = self._decided(shared, total, sample, row[6])
            if not isinstance(found, str):
                requests += 1
                tokens += found
                cached += min(read, found)
        return requests, tokens, cached

    def reusable(
        self, shared: int, total: int | None, provider: str, model: str | None, time: float | None = None
    ) -> int | str:
        """Of so many shared leading tokens, those that a provider can reuse, or the reason why that is not known."""
        rule = self._rule(provider, model, time)
        return "minimum_unknown" if rule is None else rule.reusable(shared, total, self._block_size)

    def _registered(self, template: str | None, revision: str | None, model: str | None) -> int | None:
        if self._inventory is None:
            return None
        key = (template, revision, model)
        if key not in self._lengths:
            if len(self._lengths) >= _REMEMBERED:
                self._lengths.clear()
            self._lengths[key] = self._inventory.tokens(*key)
        return self._lengths[key]

    def _rule(self, provider: str, model: str | None, time: float | None) -> Rule | None:
        if self.dated:
            return find_rule(self._rules, provider, model, time)
        key = (provider, model)
        if key not in self._known:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[key] = find_rule(self._rules, provider, model, time)
        return self._known[key]


def _number(text: str) -> int | None:
    """A count of tokens as logs write it; None where it is not one."""
    plain = text.strip().removesuffix(".0")
    return int(plain) if plain.isascii() and plain.isdigit() and len(plain) <= _LONGEST_NUMBER else None
