"""Writes generated files, or says how those that are there differ."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from .producers import Producer
    from .settings import Settings


class PackError(ValueError):
    """An output folder that holds what nobody generates.

    Attributes:
        files: the unknown files.
    """

    def __init__(self, files: list[Path]) -> None:
        self.files = files
        super().__init__(
            "\n".join(f"{file}: file: got an unknown file, expected only generated ones here" for file in files)
        )


@dataclass(frozen=True, slots=True)
class Output:
    """One file that should be there."""

    path: Path
    content: str

    def current(self) -> str | None:
        """What stands there now; None where nothing does."""
        return self.path.read_text(encoding="utf-8") if self.path.exists() else None


def outputs(producers: Iterable[Producer], settings: Settings, root: Path) -> list[Output]:
    """Every file of every producer below a root.

    Raises:
        PackError: where an output folder holds a file that is neither generated nor kept. A left-over rule file would
            go on firing, a left-over dashboard would go on being shown.
    """
    files: list[Output] = []
    unknown: list[Path] = []
    for producer in producers:
        folder, made = root / producer.folder, producer.make(settings)
        files += [Output(folder / name, made[name]) for name in sorted(made)]
        if folder.is_dir():
            unknown += [path for path in sorted(folder.iterdir()) if path.name not in {*made, *producer.kept}]
    if unknown:
        raise PackError(unknown)
    return files


def write(files: Iterable[Output]) -> list[Path]:
    """Writes what differs; returns what was written."""
    changed = [file for file in files if file.current() != file.content]
    for file in changed:
        file.path.parent.mkdir(parents=True, exist_ok=True)
        file.path.write_text(file.content, encoding="utf-8", newline="\n")
    return [file.path for file in changed]


def drift(files: Iterable[Output]) -> str:
    """A unified diff from what is there to what should be; empty where nothing differs."""
    text = ""
    for file in files:
        before = file.current()
        if before != file.content:
            text += "".join(
                difflib.unified_diff(
                    (before or "").splitlines(keepends=True),
                    file.content.splitlines(keepends=True),
                    str(file.path) if before is not None else "nothing",
                    str(file.path),
                )
            )
    return text
