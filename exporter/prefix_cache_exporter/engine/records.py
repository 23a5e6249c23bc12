"""What metric maps say, as frozen records: entries, caveats, fingerprints, dialects, versions."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from prefix_cache_exporter.measures import engine as catalogue

if TYPE_CHECKING:
    from collections.abc import Mapping

Kind = Literal["counter", "gauge", "histogram", "info"]
Combine = Literal["sum", "mean", "same"]

HASH_ALGORITHM = "hash_algorithm"
"""The one measure that is a name, not a number; it becomes a label of the engine's info."""
MEASURES = (
    *(family.id for family in catalogue.COUNTERS if family.id != "excluded_prompt_tokens"),
    *(family.id for family in catalogue.HISTOGRAMS),
    *(family.id for family in catalogue.GAUGES),
    HASH_ALGORITHM,
)
"""Every measure that a map can map. Excluded prompt tokens are derived."""


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """Where a measure comes from.

    Attributes:
        measure: the canonical measure, or the name of a piece of evidence that only conditions use.
        families: wire names of the families that are added up; all must be there.
        kind: the families' type.
        unit: what one count on the page is.
        times: measures that one count is multiplied with to get the measure's own unit.
        where: label values that a sample must have.
        by: the label whose values split the measure.
        part: `sum` where a histogram's sum is the measure.
        label: the label of an info family that holds the value.
        combine: how values that stand beside each other (replicas, ranks) become one.
        disabled: a value that means the feature is off.
        says, never_says: words that the HELP text must and must not have, where only HELP tells.
        gate: the flag without which the family is absent.
        withheld: why there is no source, instead of one.
        source: permalink.
    """

    measure: str
    families: tuple[str, ...] = ()
    kind: Kind = "counter"
    unit: str = "1"
    times: tuple[str, ...] = ()
    where: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    by: str | None = None
    part: str | None = None
    label: str | None = None
    combine: Combine = "sum"
    disabled: float | None = None
    says: tuple[str, ...] = ()
    never_says: tuple[str, ...] = ()
    gate: str | None = None
    withheld: str | None = None
    source: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Caveat:
    """What a number of some releases gets wrong.

    Attributes:
        id: name, as exported.
        counts: one sentence: what is counted wrongly.
        errs: `over`, `under` or `either`: the way the number is off; `none` where it only reads differently.
        affects: measures that are off.
        when: the kind of condition, and what it needs.
        invalidates: measures that may not be used for an interval in which the condition held.
        spares_zero: whether a measure that did not increase stays valid: what was not counted was not counted twice.
        anomaly: whether the condition is an impossibility that is counted as an anomaly.
        source: permalinks.
    """

    id: str
    counts: str
    errs: Literal["over", "under", "either", "none"]
    affects: tuple[str, ...]
    when: Mapping[str, Any]
    invalidates: tuple[str, ...] = ()
    spares_zero: bool = False
    anomaly: bool = False
    source: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Marks:
    """What a page of a release shows whatever is measured.

    Attributes:
        whole: families that a page has unless it is an excerpt.
        present: by the release that brought them, families that must be there.
        absent: families that must not be there.
    """

    whole: tuple[str, ...] = ()
    present: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    absent: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class DialectMap:
    """The flat map of one release in one dialect.

    Attributes:
        name: the dialect's name.
        title: what it is.
        select: what tells a page of this dialect.
        verified: False where the facts were not read from the release itself.
        lazy: whether a series first appears when it is first counted.
        grows: whether families appear one after another as they are first counted, until all of the whole are there.
        start: the family that says when the process started.
        engine_label, model_label: the labels that hold the engine's rank and the model's name.
        merged_labels: labels that split one engine's series without meaning (processes of one server).
        entries: by measure.
        evidence: by name, what only conditions use.
        caveats: by id.
        marks: the fingerprint.
    """

    name: str
    title: str
    select: Mapping[str, Any]
    verified: bool
    lazy: bool
    grows: bool
    start: str | None
    engine_label: str
    model_label: str
    merged_labels: tuple[str, ...]
    entries: Mapping[str, Entry]
    evidence: Mapping[str, Entry]
    caveats: Mapping[str, Caveat]
    marks: Marks


@dataclass(frozen=True, slots=True, eq=False)
class NameStyle:
    """A way in which something between vLLM and the page renamed its families.

    Attributes:
        name: as configuration writes it.
        prefix: what stands on the page instead of the first style's prefix.
        lazy: whether a series first appears when it is first counted.
        start: whether the page's process start time is the engine's.
        source: permalink.
    """

    name: str
    prefix: str
    lazy: bool
    start: bool
    source: str


@dataclass(frozen=True, slots=True, eq=False)
class VersionMap:
    """The map of one version: its dialects, and how sure it is.

    Attributes:
        version: as asked for.
        name: the newest file that it is folded from, like `vllm/0.9.2`.
        verified: whether this very release was read.
        dialects: in the order in which a page is tried; the last one is the default.
        styles: in the order in which a page is tried.
    """

    version: str
    name: str
    verified: bool
    dialects: tuple[DialectMap, ...]
    styles: tuple[NameStyle, ...]
    wanted: frozenset[str] = frozenset()
    """Families that any of its dialects reads, under every name."""
