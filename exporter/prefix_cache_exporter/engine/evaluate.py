"""A page, through its map, to canonical numbers per engine.

Counters keep the labels that split them (processes, replicas), because restarts are recognised per series group before
anything is added up; `deltas` adds them.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from .gathered import DEFAULT_ENGINE, EXACT, Gathered, Slot
from .ladders import edge_of
from .reading import EngineKey, Group, Reading, Series
from .records import MEASURES
from .settle import settle
from .verify import verify

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .page import Page, PageFamily, Sample
    from .plan import Plan
    from .records import Entry

_REMEMBERED = 20_000
"""Series remembered before all are forgotten: far more than a page has, unless its series change at every poll."""


class Evaluator:
    """Evaluates pages of one target, faster after the first: it remembers what each series is."""

    def __init__(self) -> None:
        self._plan: Plan | None = None
        self._slots: dict[tuple[int, str], tuple[Mapping[str, str], tuple[Slot, ...]]] = {}
        self._wholes: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[Slot, ...]] = {}

    def read(self, plan: Plan, page: Page) -> Reading:
        """Evaluates one page."""
        if plan is not self._plan or len(self._slots) + len(self._wholes) > _REMEMBERED:
            self._plan, self._slots, self._wholes = plan, {}, {}
        verification = verify(plan, page)
        if verification.contradicted:
            return Reading(
                plan,
                verification.state,
                verification.reasons,
                contradicted=True,
                withheld=dict.fromkeys(MEASURES, "mismatch"),
            )
        gathered = Gathered()
        for name in plan.targets:
            family = page.families.get(name)
            if family is not None:
                self._gather(family, gathered)
        return settle(plan, page, gathered, verification)

    def _gather(self, family: PageFamily, into: Gathered) -> None:
        slots = self._slots
        groups, held = into.groups, into.held
        for sample in family.samples:
            labels = sample.labels
            known = slots.get((id(labels), sample.name))
            if known is None or known[0] is not labels:
                known = slots[id(labels), sample.name] = (labels, tuple(self._learn(family.name, sample)))
            value = sample.value
            for slot in known[1]:
                if not slot.counts:
                    into.add_level(slot, labels, value)
                elif 0 <= value <= EXACT:
                    group = groups.get(slot.group)
                    if group is None:
                        group = groups[slot.group] = {}
                    group[slot.series] = group.get(slot.series, 0.0) + value
                    held.add(slot.held)
                else:
                    into.refused[slot.entry.measure, slot.group.key] = _why_refused(value)
        self._gather_wholes(family, into)

    def _gather_wholes(self, family: PageFamily, into: Gathered) -> None:
        """What is said of all series with the same labels."""
        for key, moment in family.created.items():
            for slot in self._speaking_of(family.name, key) if isfinite(moment) else ():
                into.created[slot.group][slot.series] = moment
        for key in family.torn:
            for slot in self._speaking_of(family.name, key):
                into.refused.setdefault((slot.entry.measure, slot.group.key), "torn_histogram")

    def _speaking_of(self, family: str, key: tuple[tuple[str, str], ...]) -> tuple[Slot, ...]:
        """What is fed by the series of a family that have these labels, whatever part of them is meant."""
        known = self._wholes.get((family, key))
        if known is None:
            labels = dict(key)
            found = [slot for entry in self._targets(family) for slot in self._slot(entry, family, labels, "")]
            known = self._wholes[family, key] = tuple(found)
        return known

    def _targets(self, family: str) -> tuple[Entry, ...]:
        return self._plan.targets[family] if self._plan else ()

    def _learn(self, family: str, sample: Sample) -> Iterator[Slot]:
        suffix = sample.name[len(family) :]
        for entry in self._targets(family):
            part = ""
            if entry.kind == "histogram":
                if entry.part:
                    if suffix != f"_{entry.part}":
                        continue
                elif suffix == "_bucket":
                    part = sample.labels.get("le", "")
                    if edge_of(part) is None:  # the other buckets hold what it holds, and the last one everything
                        continue
                elif suffix == "_sum":
                    part = "sum"
                else:  # `_count` is the last bucket
                    continue
            yield from self._slot(entry, family, sample.labels, part)

    def _slot(self, entry: Entry, family: str, labels: Mapping[str, str], part: str) -> Iterator[Slot]:
        plan = self._plan
        if plan is None or any(labels.get(label) != value for label, value in entry.where.items()):
            return
        dialect = plan.dialect
        told = {dialect.engine_label, dialect.model_label, "le", entry.by, *entry.where}
        if entry.kind == "gauge":
            told.update(dialect.merged_labels)
        rest = tuple(sorted((name, value) for name, value in labels.items() if name not in told and value))
        key = EngineKey(labels.get(dialect.engine_label) or DEFAULT_ENGINE, labels.get(dialect.model_label, ""))
        by = labels.get(entry.by, "") if entry.by else ""
        series, held = Series(entry.measure, family, by, part), (entry.measure, family, key)
        merged = frozenset(dialect.merged_labels) & frozenset(labels)
        yield Slot(entry, Group(*key, rest), series, held, entry.kind in ("counter", "histogram"), merged)


def _why_refused(value: float) -> str:
    """Why a number is none that a counter can stand at."""
    if not isfinite(value):
        return "not_finite"
    return "negative" if value < 0 else "too_large"
