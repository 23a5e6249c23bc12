"""Families put together: which samples of a structure belong to which, and a page of them for each set of values."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from .ladders import Key, Ladder, ladders_of
from .lines import Dialect  # noqa: TC001  # part of the public record
from .names import Owner, family_name, owner_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from .lines import Series
    from .scan import Structure


class PageError(ValueError):
    """A body that is not one whole, unambiguous page.

    Attributes:
        reason: `empty`, `truncated`, `encoding`, `malformed` or `duplicate`.
        detail: where and what.
    """

    def __init__(self, reason: str, detail: str) -> None:
        self.reason, self.detail = reason, detail
        super().__init__(f"{reason}: {detail}")


@dataclass(frozen=True, slots=True)
class Sample:
    """One value.

    Attributes:
        name: as in OpenMetrics: a counter's ends with `_total` in both dialects.
        labels: label values by name; the same object at every poll while the series text stays the same.
        value: also NaN or infinite, where the page says so.
    """

    name: str
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class PageFamily:
    """One metric family.

    Attributes:
        name: without `_total` for counters, with `_info` for infos, in both dialects.
        type: as declared; `unknown` where the page does not say.
        help: as declared, else empty; where it is declared in several ways, each of them on a line of its own.
        samples: in page order, `_created` left out.
        created: the `_created` values, as seconds since 1970 by sorted labels (a histogram's without `le`).
        torn: sorted labels of its histograms that do not hold together, without `le`.
    """

    name: str
    type: str
    help: str
    samples: tuple[Sample, ...]
    created: Mapping[Key, float] = field(default_factory=lambda: MappingProxyType({}))
    torn: tuple[Key, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """What a body says.

    Attributes:
        families: the wanted families that are on the page, also those declared without samples.
        names: every family on the page, named as in `families`.
        format: the body's format. Which one vLLM answers tells its front ends apart.
    """

    families: Mapping[str, PageFamily]
    names: frozenset[str]
    format: Dialect = "text"


@dataclass(slots=True)
class _Family:
    """A wanted family; `samples` and `created` name values by their index."""

    type: str
    help: str
    samples: list[tuple[int, str, Mapping[str, str]]] = field(default_factory=list)
    created: list[tuple[int, Key]] = field(default_factory=list)
    ladders: list[Ladder] = field(default_factory=list)
    last: tuple[Sample, ...] = ()


class Layout:
    """What a structure means for the wanted families; pages of the same structure share it.

    Args:
        structure: of the page.
        wanted: names of the families to read.
        created: whether start times are read.

    Raises:
        PageError: where the structure is ambiguous.
    """

    def __init__(self, structure: Structure, wanted: frozenset[str], *, created: bool) -> None:
        self.structure = structure
        series = structure.series
        if len({each.identity for each in series}) < len(series):
            raise PageError("duplicate", f"{_first_twice(series)} stands twice")
        aliases = _aliases(structure)
        types, helps = _declarations(structure, aliases, wanted)
        owners = {name: owner_of(name, types, wanted) for name in structure.names - aliases}
        for name, owner in owners.items():
            if owner.sample != name and owner.sample in owners and owner.family in wanted:
                raise PageError("duplicate", f"{name} and {owner.sample} are one counter")
        self._names = _names(types, owners)
        self._families = {
            name: _Family(types.get(name, "unknown"), helps.get(name, "")) for name in self._names & wanted
        }
        parts: dict[str, list[tuple[int, str, Key]]] = {name: [] for name in self._families}
        for index, each in enumerate(series):
            if each.name in aliases or owners[each.name].family not in wanted:
                continue
            owner = owners[each.name]
            if owner.created and owner.family not in self._names:
                continue
            family = self._families[owner.family]
            if not owner.created:
                family.samples.append((index, owner.sample, each.labels))
                parts[owner.family].append((index, owner.sample, each.key))
            elif created:
                family.created.append((index, each.key))
        for name, family in self._families.items():
            family.ladders = ladders_of(name, parts[name])

    def fill(self, values: list[float], dialect: Dialect) -> Page:
        """The page of these values; samples whose value has not moved are those of the page before."""
        families = {}
        for name, family in self._families.items():
            if len(family.last) == len(family.samples):
                family.last = tuple(
                    last if values[index] == last.value else Sample(sample, labels, values[index])
                    for last, (index, sample, labels) in zip(family.last, family.samples, strict=True)
                )
            else:
                family.last = tuple(Sample(sample, labels, values[index]) for index, sample, labels in family.samples)
            created = MappingProxyType({key: values[index] for index, key in family.created})
            torn = tuple([ladder.key for ladder in family.ladders if not ladder.holds(values)])
            families[name] = PageFamily(name, family.type, family.help, family.last, created, torn)
        return Page(MappingProxyType(families), self._names, dialect)


def _aliases(structure: Structure) -> frozenset[str]:
    """Gauges that repeat a counter under its name without `_total`; the counter is read.

    Ray exports every counter so: https://github.com/ray-project/ray/pull/43795.
    """
    declared = {(line.name, line.value) for line in structure.metadata if line.kind == "TYPE"}
    return frozenset(name for name, type_ in declared if type_ == "gauge" and (f"{name}_total", "counter") in declared)


def _declarations(
    structure: Structure, aliases: Collection[str], wanted: frozenset[str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Types and helps by family name. The first type counts, but wanted families may not have two; helps all do."""
    types: dict[str, str] = {}
    declared: dict[str, str] = {}
    for line in structure.metadata:
        if line.kind == "TYPE" and line.name not in aliases:
            name = family_name(line.name, line.value)
            # Two types may also make two families of one name on the page, a counter's `x` and a gauge's `x_total`.
            said = {declared.setdefault(line.name, line.value), types.setdefault(name, line.value)} - {line.value}
            if said and not wanted.isdisjoint({name, *(family_name(line.name, type_) for type_ in said)}):
                raise PageError("malformed", f"{name} is declared as {min(said)} and as {line.value}")
    helps: dict[str, dict[str, None]] = {}
    for line in structure.metadata:
        if line.kind == "HELP" and line.name not in aliases:
            bases = (line.name, line.name.removesuffix("_total"), f"{line.name}_info")
            name = next((base for base in bases if base in types), bases[1])
            types.setdefault(name, "unknown")
            helps.setdefault(name, {})[line.value.replace("\n", " ")] = None
    return types, {name: "\n".join(said) for name, said in helps.items()}


def _names(types: Mapping[str, str], owners: Mapping[str, Owner]) -> frozenset[str]:
    names = {name for name in types if name.removesuffix("_created") not in types or not name.endswith("_created")}
    names.update(owner.family for owner in owners.values() if not owner.created)  # a start time alone is no counter
    return frozenset(names)


def _first_twice(series: list[Series]) -> str:
    [(name, key), _] = Counter((each.name, each.key) for each in series).most_common(1)[0]
    return name + "".join(f" {label}={value!r}" for label, value in key)
