from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from prefix_cache_exporter.config.model import Config


class Watch:
    """Tells when the content of files has changed.

    Content, because Kubernetes updates a mounted ConfigMap by swapping a symlink two folders up: neither the name
    of the file nor its inode says anything (https://github.com/jimmidyson/configmap-reload/issues/190).

    Attributes:
        seen: a digest of what the last look saw.
    """

    def __init__(self) -> None:
        self.seen: bytes | None = None

    def changed(self, files: Iterable[Path]) -> bool:
        """Whether the files, or their content, differ from the last look. The first look only remembers."""
        found = _digest(files)
        before, self.seen = self.seen, found
        return before is not None and before != found


def files_of(config: Config, file: Path | None) -> Iterator[Path]:
    """The configuration file, and the files and folders that it names and that are read with it."""
    if file is not None:
        yield file
    yield from config.prices.files
    if config.inventory.file is not None:
        yield config.inventory.file
    for folder in config.maps.folders:
        yield from sorted(folder.rglob("*.y*ml"))


def _digest(files: Iterable[Path]) -> bytes:
    digest = hashlib.blake2b()
    for file in files:
        try:
            content = file.read_bytes()
        except OSError:
            content = b"unreadable"
        for part in (str(file).encode(), content):
            digest.update(len(part).to_bytes(8, "big") + part)
    return digest.digest()
