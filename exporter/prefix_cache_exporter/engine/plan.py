"""A flat map made ready for pages of one name style: which measures each family of the page feeds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from .maps import styled
from .records import MEASURES, DialectMap, NameStyle, VersionMap

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .page import Page
    from .records import Entry


class UnknownChoiceError(ValueError):
    """A dialect or name style that the map of a version does not have.

    Attributes:
        what: `dialect` or `name style`.
        got: what was asked for.
        expected: what there is.
    """

    def __init__(self, what: str, got: str, expected: tuple[str, ...]) -> None:
        self.what, self.got, self.expected = what, got, expected
        super().__init__(f"{what}: got {got}, expected one of auto, {', '.join(expected)}")


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """How pages of one version, dialect and name style are read.

    Attributes:
        version: the version's map.
        dialect, style: what was chosen.
        lazy: whether a series first appears when it is first counted.
        targets: by family name on the page, the entries that it feeds.
        families: by measure, its entry's families as named on the page.
        absent, whole: the fingerprint's families as named on the page.
        present: groups of such families, one per release that brought them.
    """

    version: VersionMap
    dialect: DialectMap
    style: NameStyle
    lazy: bool
    targets: Mapping[str, tuple[Entry, ...]]
    families: Mapping[str, tuple[str, ...]]
    absent: frozenset[str]
    whole: frozenset[str]
    present: tuple[tuple[str, ...], ...]

    @property
    def start(self) -> str | None:
        """The family that says when the engine's process started, if the page can say it."""
        return self.dialect.start if self.style.start else None

    def awaits(self, page: Page) -> bool:
        """Whether a page may lack families because nothing of them was counted yet."""
        shows = not page.names.isdisjoint(self.targets)
        growing = self.dialect.grows and not self.whole <= page.names and shows
        return growing or (self.lazy and (shows or not self._is_of_another_style(page)))

    def _is_of_another_style(self, page: Page) -> bool:
        others = tuple(style.prefix for style in self.version.styles if style is not self.style)
        return any(name.startswith(others) for name in page.names)


def select_plan(version: VersionMap, page: Page, *, dialect: str = "auto", style: str = "auto") -> Plan:
    """The plan for a page: as asked for, or as the page shows.

    Raises:
        UnknownChoiceError: where what is asked for does not exist at this version.
    """
    chosen_style = _choose_style(version, page, style)
    return _plan(version, _choose_dialect(version, page, chosen_style, dialect), chosen_style)


def _choose_style(version: VersionMap, page: Page, asked: str) -> NameStyle:
    if asked != "auto":
        known = tuple(style.name for style in version.styles)
        if asked not in known:
            raise UnknownChoiceError("name style", asked, known)
        return version.styles[known.index(asked)]
    shown = (style for style in version.styles if any(name.startswith(style.prefix) for name in page.names))
    return next(shown, version.styles[0])


def _choose_dialect(version: VersionMap, page: Page, style: NameStyle, asked: str) -> DialectMap:
    if asked != "auto":
        known = tuple(dialect.name for dialect in version.dialects)
        if asked not in known:
            raise UnknownChoiceError("dialect", asked, known)
        return version.dialects[known.index(asked)]
    default = next(dialect for dialect in version.dialects if not dialect.select)
    return next((other for other in version.dialects if _shows(other, version, page, style)), default)


def _shows(dialect: DialectMap, version: VersionMap, page: Page, style: NameStyle) -> bool:
    """Whether a page is of a dialect that has something to be told by."""
    select, native = dialect.select, version.styles[0]
    if not select or select.get("format", page.format) != page.format:
        return False
    if any(styled(name, style, native) in page.names for name in select.get("absent", ())):
        return False
    label = select.get("without_label")
    return label is None or not any(label in s.labels for family in page.families.values() for s in family.samples)


@lru_cache(maxsize=256)
def _plan(version: VersionMap, dialect: DialectMap, style: NameStyle) -> Plan:
    native = version.styles[0]

    def named(families: tuple[str, ...] | frozenset[str]) -> tuple[str, ...]:
        return tuple(styled(family, style, native) for family in families)

    targets: dict[str, tuple[Entry, ...]] = {}
    for entry in (*dialect.entries.values(), *dialect.evidence.values()):
        for family in named(entry.families):
            targets[family] = (*targets.get(family, ()), entry)
    marks = dialect.marks
    return Plan(
        version,
        dialect,
        style,
        lazy=dialect.lazy or style.lazy,
        targets=targets,
        families={name: named(dialect.entries[name].families) for name in MEASURES if name in dialect.entries},
        absent=frozenset(named(marks.absent)),
        whole=frozenset(named(marks.whole)),
        present=tuple(map(named, marks.present.values())),
    )
