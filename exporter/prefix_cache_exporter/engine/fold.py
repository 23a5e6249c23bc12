"""Files of changes folded into the flat dialects of one release."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .records import Caveat, DialectMap, Entry, Marks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def merge(before: Mapping[str, Any], changes: Mapping[str, Any] | None, version: str) -> dict[str, Any] | None:
    """One dialect after a file's changes; None where it ends. `null` entries stay: they end what `extends` brings."""
    if changes is None:
        return None
    merged = {**before, **changes}
    for part in ("measures", "evidence", "caveats"):
        merged[part] = {**before.get(part, {}), **changes.get(part, {})}
    gone, come = changes.get("absent", ()), changes.get("present", ())
    undated = {*gone, *changes.get("optional", ())}
    merged["present"] = {
        since: left
        for since, names in before.get("present", {}).items()
        if (left := [name for name in names if name not in undated])
    }
    if come:
        merged["present"][version] = come
    merged["absent"] = [*(name for name in before.get("absent", ()) if name not in come), *gone]
    return merged


def brought_later(documents: Iterable[Mapping[str, Any]]) -> dict[str, set[str]]:
    """By dialect, families that only later maps bring, and that a page of this map cannot have."""
    later: dict[str, set[str]] = {}
    for document in documents:
        for dialect, changes in document.get("dialects", {}).items():
            later.setdefault(dialect, set()).update((changes or {}).get("present", ()))
    return later


def dialects_of(folded: Mapping[str, Mapping[str, Any] | None], later: Mapping[str, set[str]]) -> Iterable[DialectMap]:
    """Flat dialects of what has been folded together; `later` is what only later maps bring."""
    for name, own in folded.items():
        if own is None:
            continue
        base = folded[own["extends"]] if "extends" in own else None
        parts = {part: {**(base or {}).get(part, {}), **own[part]} for part in ("measures", "evidence", "caveats")}
        settings = {**(base or {}), **own}
        present = {since: tuple(names) for since, names in own["present"].items()}
        brought = later.get(name, set()).difference(*present.values())
        yield DialectMap(
            name=name,
            title=own["title"],
            select=own.get("select", {}),
            verified=own.get("verified", True),
            lazy=own.get("lazy", False),
            grows=own.get("grows", False),
            start=own.get("start"),
            engine_label=settings["engine_label"],
            model_label=settings["model_label"],
            merged_labels=tuple(settings.get("merged_labels", ())),
            entries=_entries(parts["measures"]),
            evidence=_entries(parts["evidence"]),
            caveats={id_: _caveat(id_, caveat) for id_, caveat in parts["caveats"].items() if caveat is not None},
            marks=Marks(tuple(own.get("whole", ())), present, frozenset(own["absent"]) | brought),
        )


def unfinished(dialects: Iterable[DialectMap], before: Iterable[DialectMap]) -> Iterable[DialectMap]:
    """Dialects of a build that leads to a release: what the release mends may not be mended in it yet.

    Only caveats that a page can show are taken over; what was always true of the release before need not be of it.
    """
    earlier = {dialect.name: dialect.caveats for dialect in before}
    for dialect in dialects:
        mended = {
            id_: caveat
            for id_, caveat in earlier.get(dialect.name, {}).items()
            if id_ not in dialect.caveats and caveat.when.keys().isdisjoint({"always", "unseen"})
        }
        yield replace(dialect, caveats={**dialect.caveats, **mended})


def _entries(written: Mapping[str, Mapping[str, Any] | None]) -> dict[str, Entry]:
    return {measure: _entry(measure, entry) for measure, entry in written.items() if entry is not None}


def _entry(measure: str, written: Mapping[str, Any]) -> Entry:
    values = dict(written)
    families = values.pop("family", ())
    help_ = values.pop("help", {})
    return Entry(
        measure,
        families=(families,) if isinstance(families, str) else tuple(families),
        times=tuple(values.pop("times", ())),
        says=tuple(help_.get("says", ())),
        never_says=tuple(help_.get("never_says", ())),
        **values,
    )


def _caveat(id_: str, written: Mapping[str, Any]) -> Caveat:
    lists = {key: tuple(written.get(key, ())) for key in ("affects", "invalidates", "source")}
    return Caveat(id_, **{**written, **lists})
