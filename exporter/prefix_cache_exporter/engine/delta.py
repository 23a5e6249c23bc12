"""What was counted between two readings, per engine, and as the ledger wants it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .reading import EngineKey

CACHED, PROMPT, EXCLUDED = "cached_prompt_tokens", "prompt_tokens", "excluded_prompt_tokens"


class Increase(NamedTuple):
    """One counter's increase, as the ledger wants it.

    Attributes:
        measure: id in the catalogue.
        engine: rank.
        model: as the page names it.
        by: the value of the measure's own label (finish reason, tier, exclusion reason), else empty.
        part: for histograms `sum` or the bucket's `le`, else empty.
        amount: whole for tokens, requests and buckets.
    """

    measure: str
    engine: str
    model: str
    by: str
    part: str
    amount: float


@dataclass(slots=True)
class EngineDelta:
    """What one engine counted.

    Attributes:
        increases: by measure, own label and histogram part; in the measure's unit.
        withheld: by measure, why it has no increase for this interval.
        caveats: ids of the caveats that were active.
        excluded: why the interval's prompt tokens are excluded, or None if they are not.
    """

    increases: dict[tuple[str, str, str], float] = field(default_factory=dict)
    withheld: dict[str, str] = field(default_factory=dict)
    caveats: list[str] = field(default_factory=list)
    excluded: str | None = None

    def total(self, measure: str) -> float | None:
        """A counter's increase over all its own labels; None where there is none."""
        amounts = [amount for (name, _, part), amount in self.increases.items() if name == measure and not part]
        return sum(amounts) if amounts else None

    def withhold(self, measure: str, reason: str) -> None:
        """Gives a measure no increase for this interval."""
        self.withheld[measure] = reason
        self.drop(measure)

    def drop(self, measure: str) -> None:
        """Takes a measure's increases out."""
        for slot in [slot for slot in self.increases if slot[0] == measure]:
            del self.increases[slot]


@dataclass(frozen=True, slots=True)
class Delta:
    """What was counted between two readings.

    Attributes:
        engines: by engine.
        withheld: by measure, why no engine has it, or why at least one has not.
        caveats: ids of active caveats, in the map's order.
        anomalies: by reason, how many increases could not be believed.
        restarts: groups whose restart was recognised.
        counted: False where there was no reading to count from.
    """

    engines: Mapping[EngineKey, EngineDelta]
    withheld: Mapping[str, str]
    caveats: tuple[str, ...] = ()
    anomalies: Mapping[str, int] = field(default_factory=dict)
    restarts: int = 0
    counted: bool = True

    def ledger(self) -> Iterator[Increase]:
        """Increases as the ledger counts them: prompt tokens of excluded intervals move to the excluded ones."""
        for (engine, model), delta in self.engines.items():
            for (measure, by, part), amount in delta.increases.items():
                if measure == PROMPT and delta.excluded is not None:
                    yield Increase(EXCLUDED, engine, model, delta.excluded, part, amount)
                else:
                    yield Increase(measure, engine, model, by, part, amount)
