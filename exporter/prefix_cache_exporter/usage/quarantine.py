"""Undecided records for people to look at: their numbers and the reason, no text of theirs, be it a key."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from pathlib import Path

    from .record import Quarantined

_log = logging.getLogger(__name__)

LARGEST = 64 << 20
"""Bytes of a quarantine file; what comes after is only counted."""


class QuarantineFile:
    """Appends JSON lines to a file up to a size; a disk that refuses is said once and costs no record."""

    def __init__(self, path: Path, largest: int = LARGEST) -> None:
        self._path, self._largest = path, largest
        self._complained = False

    def write(self, record: Quarantined) -> None:
        """Appends one record."""
        line = msgspec.json.encode({"reason": record.reason, "usage": record.usage}) + b"\n"
        try:
            with self._path.open("ab") as file:
                if file.tell() + len(line) > self._largest:
                    self._complain("is full")
                    return
                file.write(line)
        except OSError as error:
            self._complain(f"cannot be written: {(error.strerror or 'an error').lower()}")

    def _complain(self, what: str) -> None:
        if not self._complained:
            _log.warning("quarantine file %s %s; records are counted all the same", self._path, what)
            self._complained = True
