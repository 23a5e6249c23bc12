"""Metric maps: what each vLLM release exposes and what it means, as the fold of the files in `metric_maps/vllm`.

A file holds what changed at a release. Entries replace the entries of earlier files by name, `null` ends them, and
`extends` lets one dialect say only how it differs from another.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from prefix_cache_exporter.documents import DocumentError, data_root, parse_yaml
from prefix_cache_exporter.measures import engine as catalogue

from .versions import Version, parse_version

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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


class MapSet:
    """All maps, folded once per file."""

    def __init__(self, documents: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        """Folds documents, each with the file it stands for.

        Raises:
            DocumentError: where versions repeat or do not lie in their file's range.
        """
        ordered = [(_version(document["version"], file), file, document) for file, document in documents]
        ordered.sort(key=lambda item: item[0].place)
        self.files = tuple(document["version"] for _, _, document in ordered)
        self._places = [version.place for version, _, _ in ordered]
        self._documents = [document for _, _, document in ordered]
        self._folded: dict[int, tuple[tuple[DialectMap, ...], tuple[NameStyle, ...]]] = {}
        self.releases: dict[str, str] = {}
        """Every release that was read, with the file that it belongs to."""
        self._verified: set[tuple[tuple[int, ...], int]] = set()
        self._resolved: dict[str, VersionMap | None] = {}
        for number, (_, file, document) in enumerate(ordered):
            for index, release in enumerate(document["verified"]):
                self._verify(number, file, index, release)

    def _verify(self, number: int, file: str, index: int, release: str) -> None:
        place = _version(release, file).place
        where = f"verified[{index}]"
        if place in self._verified:
            raise DocumentError(file, where, release, "each release in one map")
        if bisect_right(self._places, place) != number + 1:
            raise DocumentError(file, where, release, "a release between this map's version and the next one's")
        self._verified.add(place)
        self.releases[release] = self.files[number]

    def resolve(self, version: str | None) -> VersionMap | None:
        """The map for a version, or None where it is unknown: not a version, or older than the oldest map.

        A version that was not read (a newer one, a patch release, a development build) gets the newest map that is
        not newer than it, unverified: whether its page still looks like that is for `verify` to say.
        """
        if not version:
            return None
        if version not in self._resolved:
            self._resolved[version] = self._resolve(version)
        return self._resolved[version]

    def _resolve(self, version: str) -> VersionMap | None:
        parsed = parse_version(version)
        if parsed is None:
            return None
        number = bisect_right(self._places, parsed.place) - 1
        if number < 0:
            return None
        dialects, styles = self._fold(number)
        if parsed.unfinished and number and parsed.place == self._places[number]:
            dialects = tuple(_unfinished(dialects, self._fold(number - 1)[0]))
        verified = parsed.place in self._verified and not parsed.unfinished
        wanted = {name for dialect in dialects for style in styles for name in families_of(dialect, style, styles[0])}
        name = f"vllm/{self.files[number]}"
        return VersionMap(version, name, verified, dialects, styles, frozenset(wanted))

    def _fold(self, number: int) -> tuple[tuple[DialectMap, ...], tuple[NameStyle, ...]]:
        if number not in self._folded:
            merged: dict[str, Any] = {"name_styles": {}, "dialects": {}}
            for document in self._documents[: number + 1]:
                merged["name_styles"].update(document.get("name_styles", {}))
                for name, changes in document.get("dialects", {}).items():
                    before = merged["dialects"].get(name) or {}
                    merged["dialects"][name] = _merge(before, changes, document["version"])
            later = _brought_later(self._documents[number + 1 :])
            self._folded[number] = (
                tuple(_dialects(merged["dialects"], later)),
                tuple(NameStyle(name=name, **style) for name, style in merged["name_styles"].items()),
            )
        return self._folded[number]


def load_maps(folders: Iterable[Path | str] = ()) -> MapSet:
    """The shipped maps with those of the user's folders, whose files replace shipped ones of the same version.

    The shipped files are held against their schema by the tests of every release; the user's are held against it here.

    Raises:
        DocumentError: for the first mistake.
    """
    documents = {}
    for folder, own in ((data_root() / "vllm", False), *((Path(folder), True) for folder in folders)):
        for path in sorted(_yaml_files(folder)):
            documents[path.stem] = (str(path), _read(path, check=own))
    return MapSet(documents.values())


def check_map(data: Any, file: str) -> None:
    """Holds one map file against the schema and the catalogue.

    Raises:
        DocumentError: for the first mistake.
    """
    # Imported late: the shipped maps need no schema at run time, and a sidecar that has none of its own starts faster.
    from prefix_cache_exporter.documents import read_schema, validate  # noqa: PLC0415

    validate(data, read_schema("vllm"), file)
    if Path(file).stem != data["version"]:
        raise DocumentError(file, "version", data["version"], f"the file's name, {Path(file).stem}")
    for dialect, changes in data.get("dialects", {}).items():
        for measure in (changes or {}).get("measures", {}):
            if measure not in MEASURES:
                where = f"dialects.{dialect}.measures"
                raise DocumentError(file, where, f"the unknown measure {measure}", f"one of {', '.join(MEASURES)}")


def families_of(dialect: DialectMap, style: NameStyle, native: NameStyle) -> frozenset[str]:
    """Names of the families that a dialect's map reads, as a style writes them."""
    entries = (*dialect.entries.values(), *dialect.evidence.values())
    names = {styled(name, style, native) for entry in entries for name in entry.families}
    return frozenset(names | {dialect.start} if dialect.start and style.start else names)


def styled(name: str, style: NameStyle, native: NameStyle) -> str:
    """A family's name as a style writes it."""
    return style.prefix + name.removeprefix(native.prefix) if name.startswith(native.prefix) else name


def _yaml_files(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if path.suffix in {".yaml", ".yml"}]
    except OSError as error:
        raise DocumentError(str(folder), "folder", (error.strerror or "an error").lower(), "a folder") from error


def _read(path: Path, *, check: bool) -> Mapping[str, Any]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DocumentError(str(path), "file", (error.strerror or "an error").lower(), "a readable file") from error
    data = parse_yaml(content, str(path))
    if check:
        check_map(data, str(path))
    document: Mapping[str, Any] = data
    return document


def _version(text: str, file: str) -> Version:
    version = parse_version(text)
    if version is None or version.unfinished:
        raise DocumentError(file, "version", text, "a release like 0.9.2")
    return version


def _merge(before: Mapping[str, Any], changes: Mapping[str, Any] | None, version: str) -> dict[str, Any] | None:
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


def _brought_later(documents: Iterable[Mapping[str, Any]]) -> dict[str, set[str]]:
    """By dialect, families that only later maps bring, and that a page of this map cannot have."""
    later: dict[str, set[str]] = {}
    for document in documents:
        for dialect, changes in document.get("dialects", {}).items():
            later.setdefault(dialect, set()).update((changes or {}).get("present", ()))
    return later


def _dialects(merged: Mapping[str, Mapping[str, Any] | None], later: Mapping[str, set[str]]) -> Iterable[DialectMap]:
    for name, own in merged.items():
        if own is None:
            continue
        base = merged[own["extends"]] if "extends" in own else None
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
            start=own.get("start"),
            engine_label=settings["engine_label"],
            model_label=settings["model_label"],
            merged_labels=tuple(settings.get("merged_labels", ())),
            entries=_entries(parts["measures"]),
            evidence=_entries(parts["evidence"]),
            caveats={id_: _caveat(id_, caveat) for id_, caveat in parts["caveats"].items() if caveat is not None},
            marks=Marks(tuple(own.get("whole", ())), present, frozenset(own["absent"]) | brought),
        )


def _unfinished(dialects: Iterable[DialectMap], before: Iterable[DialectMap]) -> Iterable[DialectMap]:
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
