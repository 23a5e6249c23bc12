"""Files that give nothing new while they stay as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container

    from prefix_cache_exporter.usage.files import File, Match

_Stamp = tuple[int, int]
_LOOK_AGAIN: _Stamp = (-1, -1)
"""No file has this size and time."""


class Aside:
    """Finished logs, copies, unreadable files and idle ones that were closed, each with the log that it belongs to."""

    def __init__(self) -> None:
        self._files: dict[File, tuple[int, _Stamp]] = {}

    def put(self, file: File, key: int, stamp: _Stamp = _LOOK_AGAIN) -> None:
        """Leaves a file alone until its stamp changes; without one, it is looked at again each time."""
        self._files[file] = (key, stamp)

    def take(self, file: File) -> int | None:
        """A file is read again; gives the log that it belonged to."""
        return self._files.pop(file, (None,))[0]

    def holds(self, match: Match) -> bool:
        """Whether a file is as it was when it was set aside."""
        return match.file in self._files and self._files[match.file][1] == match.stamp

    def logs(self) -> set[int]:
        """Logs that some file set aside belongs to."""
        return {key for key, _ in self._files.values()}

    def release(self, key: int) -> None:
        """Lets files be judged again that were taken for copies of a log."""
        for file in [file for file, (of, _) in self._files.items() if of == key]:
            del self._files[file]

    def drop_absent(self, here: Container[File]) -> list[int]:
        """Drops files that are not there any more, and gives the logs that they belonged to."""
        absent = [file for file in self._files if file not in here]
        return [self._files.pop(file)[0] for file in absent]
