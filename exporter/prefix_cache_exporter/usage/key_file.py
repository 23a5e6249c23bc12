"""The key that hashes tenants and ids, as an operator keeps it: in a file of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prefix_cache_exporter.documents import DocumentError

from .namespaces import fitted

if TYPE_CHECKING:
    from pathlib import Path


def read_key(path: Path) -> bytes:
    """The key in a file, without the newline that editors add.

    Raises:
        DocumentError: where the file cannot be read or is empty.
    """
    try:
        key = path.read_bytes().strip()
    except OSError as error:
        raise DocumentError(str(path), "file", (error.strerror or "an error").lower(), "a readable file") from error
    if not key:
        raise DocumentError(str(path), "file", "nothing", "a key")
    return fitted(key)
