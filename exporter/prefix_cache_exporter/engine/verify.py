"""Whether a page is what its map says: the fingerprint, held against every page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .page import Page, PageFamily
    from .plan import Plan
    from .records import Entry

State = Literal["verified", "unverified", "mismatch", "unknown"]

_TYPES = {
    "counter": {"counter", "unknown"},
    "gauge": {"gauge", "unknown"},
    "histogram": {"histogram", "unknown"},
    "info": {"gauge", "info", "unknown"},
}
"""Types that a page may declare for a kind; `unknown` is a page that declares none."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What holding a page against its map showed.

    Attributes:
        state: `verified` where the release was read and the page agrees; `unverified` where the page agrees with the
            map of another release, or with facts that were not read from one; `mismatch` where it does not agree.
        contradicted: whether the page is of another release or kind, so that nothing on it can be trusted. A mere
            lack takes away only what is lacking.
        reasons: what does not agree, each like `missing vllm:prompt_tokens`.
    """

    state: State
    contradicted: bool
    reasons: tuple[str, ...]


def verify(plan: Plan, page: Page) -> Verification:
    """Holds a page against the plan's fingerprint."""
    contradictions = tuple(_contradictions(plan, page))
    if contradictions:
        return Verification("mismatch", contradicted=True, reasons=contradictions)
    missing = () if plan.awaits(page) else tuple(f"missing {family}" for family in _missing(plan, page))
    if missing:
        # The map of another release is only used while everything looks as it says.
        return Verification("mismatch", contradicted=not plan.version.verified, reasons=missing)
    # A page that has counted nothing yet shows nothing that could be held against the map.
    known = plan.version.verified and plan.dialect.verified and not page.names.isdisjoint(plan.targets)
    return Verification("verified" if known else "unverified", contradicted=False, reasons=())


def _contradictions(plan: Plan, page: Page) -> Iterator[str]:
    if not plan.absent.isdisjoint(page.names):
        yield from (f"unexpected {name}" for name in sorted(plan.absent & page.names))
    yield from _lacking_groups(plan, page)
    for name, family in page.families.items():
        for entry in plan.targets.get(name, ()):
            reason = _disagreement(entry, family, known=plan.version.verified)
            if reason:
                yield reason
                break


def _lacking_groups(plan: Plan, page: Page) -> Iterator[str]:
    if not plan.lazy and is_older(plan, page):
        yield from (f"missing {name}" for group in _lacking(plan, page) for name in group)


def is_older(plan: Plan, page: Page) -> bool:
    """Whether a page lacks what the page of this release has and an older one has not.

    One family may get lost on the way. When all that a release brought is gone, and that is more than one family or
    more than one release, the page is an older release's. An excerpt proves nothing.
    """
    lacking = _lacking(plan, page)
    return len(lacking) > 1 or any(len(group) > 1 for group in lacking)


def _lacking(plan: Plan, page: Page) -> list[tuple[str, ...]]:
    """Of a page that is no excerpt, the groups of which nothing is there."""
    if not plan.whole <= page.names:
        return []
    return [group for group in plan.present if page.names.isdisjoint(group)]


def _disagreement(entry: Entry, family: PageFamily, *, known: bool) -> str | None:
    if family.type not in _TYPES[entry.kind]:
        return f"type {family.type} of {family.name}, not {entry.kind}"
    if not family.help:
        # Of a release that was read the version itself tells the unit; of any other only HELP does.
        return None if known or not entry.says else f"help of {family.name} is missing"
    for said in family.help.lower().split("\n"):
        for word in entry.never_says:
            if word in said:
                return f"help of {family.name} says {word}"
        for word in entry.says:
            if word not in said:
                return f"help of {family.name} does not say {word}"
    return None


def _missing(plan: Plan, page: Page) -> Iterator[str]:
    entries = plan.dialect.entries
    named = {name for measure, names in plan.families.items() if not entries[measure].gate for name in names}
    gone = named.difference(page.families)
    yield from sorted(gone.union(name for group in _lacking(plan, page) for name in group))
