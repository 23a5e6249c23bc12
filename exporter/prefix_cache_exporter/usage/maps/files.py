"""Usage maps as files: the YAML of one map, held against the schema, and of all that are shipped."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefix_cache_exporter.documents import DocumentError, all_errors, data_root, load_yaml, read_schema
from prefix_cache_exporter.mistakes import refuse
from prefix_cache_exporter.usage.values import word

from .misread import misread
from .mistakes import look, with_near_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def read_map(file: Path | str) -> dict[str, Any]:
    """Reads one map's YAML and holds it against the schema.

    Raises:
        DocumentError: for all mistakes in it.
    """
    document = _with_text_keys(load_yaml(file))
    wrong = [*misread(Path(file).read_bytes(), str(file)), *look(document, str(file))]
    said = [error.path for error in wrong]
    wrong += [
        with_near_key(error)
        for error in all_errors(document, read_schema("usage"), str(file))
        if not any(_within(error.path, path) or _within(path, error.path) for path in said)
    ]
    refuse(wrong, document)
    if not document.get("tokens") and not {"extends", "usage_from"} & document.keys():
        expected = "paths of the numbers, or usage_from: a format that knows them"
        raise DocumentError(str(file), "tokens", "nothing", expected)
    read: dict[str, Any] = document
    return read


def _within(inner: str, outer: str) -> bool:
    """Whether a place stands within another, or is it."""
    return inner.startswith(outer) and inner[len(outer) : len(outer) + 1] in {"", ".", "["}


def _with_text_keys(data: Any) -> Any:
    """YAML's numbers and truth values as keys of words: `values: {200: success, true: success}`."""
    if isinstance(data, dict):
        return {
            key if isinstance(key, str) else word(key) or "null": _with_text_keys(value) for key, value in data.items()
        }
    return [_with_text_keys(item) for item in data] if isinstance(data, list) else data


class ShippedFiles(Mapping[str, dict[str, Any]]):
    """The YAML of the shipped maps by format, each read when it is asked for; tests hold all to the schema."""

    def __init__(self, folder: Path) -> None:
        self._files = {file.stem: file for file in sorted(folder.glob("*.yaml"))}
        self._read: dict[str, dict[str, Any]] = {}

    def __getitem__(self, name: str) -> dict[str, Any]:
        if name not in self._read:
            document = load_yaml(self._files[name])
            if not isinstance(document, dict) or document.get("format") != name:
                raise DocumentError(str(self._files[name]), "format", "another name", f"{name}, as the file is called")
            self._read[name] = document
        return self._read[name]

    def __contains__(self, name: object) -> bool:
        return name in self._files

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


@cache
def shipped_files() -> Mapping[str, dict[str, Any]]:
    """Documents of the shipped maps by format, each read once per process."""
    return ShippedFiles(data_root() / "usage")


def user_files(user: Iterable[Path | str]) -> list[Path]:
    """The files of the user's own maps: of each folder, all that are YAML, by name.

    A folder may be one of maps or, as configuration names it, one with `usage/` in it.
    """
    files: list[Path] = []
    for entry in map(Path, user):
        if entry.is_dir():
            for folder in (entry, entry / "usage"):
                files += sorted({*folder.glob("*.yaml"), *folder.glob("*.yml")})
        else:
            files.append(entry)
    return files
