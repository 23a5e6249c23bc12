"""How much of a shared prefix a provider can reuse at all: whole blocks of an engine, or nothing below a minimum."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from prefix_cache_exporter.documents import DocumentError

from .patterns import compile_patterns, spellings
from .providers import Providers, shipped_providers

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Mapping

_FOREVER = float("inf")


class Rule(msgspec.Struct, frozen=True):
    """One reuse rule.

    Attributes:
        provider: canonical name.
        models: which of its models; None for all.
        start, end: when it holds, in seconds since 1970.
        minimum: the lowest and the highest minimum that sources state; None for engines with blocks.
        block_size: tokens in a block, where the rule itself knows it.
        recomputed: tokens at the end of a prompt that are always computed.
    """

    provider: str
    models: re.Pattern[str] | None = None
    start: float = -_FOREVER
    end: float = _FOREVER
    minimum: tuple[int, int] | None = None
    block_size: int | None = None
    recomputed: int = 0

    @property
    def dated(self) -> bool:
        """Whether the rule does not hold at all times."""
        return self.start != -_FOREVER or self.end != _FOREVER

    def fits(self, model: str | None, time: float | None) -> bool:
        """Whether the rule speaks of a model; a request without a time is held against the rule in force last."""
        if self.models is not None and not (model and any(map(self.models.search, spellings(model)))):
            return False
        return self.end == _FOREVER if time is None else self.start <= time < self.end

    def reusable(self, shared: int, total: int | None, block_size: int | None) -> int | str:
        """Of so many shared leading tokens, those that can be reused, or why that is not known.

        Args:
            shared: length of the shared prefix in tokens.
            total: length of the prompt in tokens, where known.
            block_size: the deployment's block size, where configured.
        """
        if self.minimum is None:
            block = block_size or self.block_size
            if block is None:
                return "block_size_unknown"
            reach = shared if total is None else min(shared, max(total - self.recomputed, 0))
            return reach // block * block
        lowest, highest = self.minimum
        if shared < lowest:
            return 0
        return shared if shared >= highest else "minimum_disputed"


def shipped_rules(providers: Providers | None = None) -> tuple[Rule, ...]:
    """The rules of `metric_maps/providers.yaml`, in its order."""
    known = providers or shipped_providers()
    return tuple(_rule(name, entry) for name, entries in known.reuse.items() for entry in entries)


def override(entry: Mapping[str, Any], file: str, place: str) -> Rule:
    """A rule as an inventory writes it.

    Raises:
        DocumentError: where a model pattern is not one.
    """
    provider = shipped_providers().canonical(entry["provider"])
    try:
        models = compile_patterns(entry["models"]) if "models" in entry else None
    except ValueError as error:
        raise DocumentError(file, f"{place}.models", str(error), "a pattern like gpt-6* or /^gpt-6/") from error
    if "minimum_tokens" in entry:
        return Rule(provider, models, minimum=(entry["minimum_tokens"],) * 2)
    shipped = next((rule for rule in shipped_rules() if rule.provider == provider and rule.minimum is None), None)
    return Rule(
        provider, models, block_size=entry["block_size_tokens"], recomputed=shipped.recomputed if shipped else 0
    )


def find_rule(rules: Iterable[Rule], provider: str, model: str | None, time: float | None) -> Rule | None:
    """The first rule for a model, the provider's own before those of whose models it serves."""
    candidates = list(rules)
    for name in shipped_providers().with_served(provider):
        for rule in candidates:
            if rule.provider == name and rule.fits(model, time):
                return rule
    return None


def _rule(provider: str, entry: Mapping[str, Any]) -> Rule:
    minimum = entry.get("minimum_tokens")
    return Rule(
        provider,
        compile_patterns(entry["models"]) if "models" in entry else None,
        _midnight(entry["from"]) if "from" in entry else -_FOREVER,
        _midnight(entry["to"]) if "to" in entry else _FOREVER,
        None if minimum is None else (minimum, minimum) if isinstance(minimum, int) else (minimum[0], minimum[1]),
        recomputed=entry.get("blocks", {}).get("recomputed_tokens", 0),
    )


def _midnight(date: str) -> float:
    return datetime.fromisoformat(date).replace(tzinfo=UTC).timestamp()
