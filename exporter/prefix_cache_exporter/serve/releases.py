"""Which release is in force for a source: its own, else the global one; a file before what stands beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.release import ReleaseFile, Releases, from_mapping

if TYPE_CHECKING:
    from prefix_cache_exporter.config.model import ReleaseSpec
    from prefix_cache_exporter.release_board import ReleaseBoard


class SourceReleases:
    """What is declared for one source, looked at anew whenever asked.

    A file wins over what stands beside it, from the first time on that it could be read.

    Args:
        source: the source's name.
        plane: which of its planes this is.
        spec: its own release, or the global one.
        board: told what is declared.

    Raises:
        DocumentError: for a release that cannot be one.
    """

    def __init__(self, source: str, plane: str, spec: ReleaseSpec, board: ReleaseBoard) -> None:
        self._source, self._plane, self._declared, self._board = source, plane, declared(spec), board
        self._file = None if spec.file is None else ReleaseFile(spec.file)
        self._was_read = False

    def look(self) -> Releases:
        """The releases of now; what has changed is on the board."""
        if self._file is None:
            self._board.declare(self._source, self._declared, plane=self._plane)
            return self._declared
        self._file.look()
        self._was_read = self._was_read or self._file.valid
        releases = self._file.releases if self._was_read else self._declared
        self._board.declare(self._source, releases, plane=self._plane, valid=self._file.valid)
        return releases


def declared(spec: ReleaseSpec) -> Releases:
    """The releases that a specification's keys name, its file left aside.

    Raises:
        DocumentError: for a release that cannot be one.
    """
    named = {name: getattr(spec, name) for name in spec.__struct_fields__ if name != "file"}
    given = {key: value for key, value in named.items() if value is not None}
    return from_mapping(given, "configuration") if given else Releases()
