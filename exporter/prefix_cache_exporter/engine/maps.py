"""Metric maps: what each vLLM release exposes and what it means, as the fold of the files in `metric_maps/vllm`.

A file holds what changed at a release. Entries replace the entries of earlier files by name, `null` ends them, and
`extends` lets one dialect say only how it differs from another.
"""

from __future__ import annotations

from bisect import bisect_right
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefix_cache_exporter.documents import DocumentError, data_root, parse_yaml
from prefix_cache_exporter.mistakes import refuse

from .fold import brought_later, dialects_of, merge, unfinished
from .records import MEASURES, DialectMap, NameStyle, VersionMap
from .versions import Version, parse_version

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


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
            dialects = tuple(unfinished(dialects, self._fold(number - 1)[0]))
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
                    merged["dialects"][name] = merge(before, changes, document["version"])
            later = brought_later(self._documents[number + 1 :])
            self._folded[number] = (
                tuple(dialects_of(merged["dialects"], later)),
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
        DocumentError: for all mistakes.
    """
    # Imported late: the shipped maps need no schema at run time, and a sidecar that has none of its own starts faster.
    from prefix_cache_exporter.documents import read_schema, validate  # noqa: PLC0415  # with maps of a user alone

    validate(data, read_schema("vllm"), file)
    if Path(file).stem != data["version"]:
        raise DocumentError(file, "version", data["version"], f"the file's name, {Path(file).stem}")
    expected = f"one of {', '.join(MEASURES)}"
    refuse(
        DocumentError(file, f"dialects.{dialect}.measures", f"the unknown measure {measure}", expected)
        for dialect, changes in data.get("dialects", {}).items()
        for measure in (changes or {}).get("measures", {})
        if measure not in MEASURES
    )


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
