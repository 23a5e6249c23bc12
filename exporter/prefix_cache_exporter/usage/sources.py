"""From a usage source's configuration to its worker."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from .count import Counting
from .eligible import Eligibility
from .follow import Follower
from .ingest import LOG, Ingest, cursor_kind
from .merge import Merger
from .namespaces import KEY_LIMIT, Protector
from .normaliser import Normaliser
from .quarantine import QuarantineFile
from .sketch import Window

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from prefix_cache_exporter.config import UsageSource
    from prefix_cache_exporter.recorder import Recorder
    from prefix_cache_exporter.release import Release

    from .inventory import Inventory
    from .maps import MapBook
    from .price import PriceBook


class KeyFileError(ValueError):
    """A key file that gives no key.

    Attributes:
        path: the file.
        got: what was found.
    """

    def __init__(self, path: Path, got: str) -> None:
        self.path, self.got = path, got
        super().__init__(f"{path}: namespaces.key_file: got {got}, expected a file with a key in it")


def build_ingest(
    source: UsageSource,
    *,
    maps: MapBook,
    recorder: Recorder,
    release: Callable[[], Release],
    prices: PriceBook | None = None,
    inventory: Inventory | None = None,
    clock: Callable[[], float] = time.time,
    monotonic: Callable[[], float] = time.monotonic,
) -> Ingest:
    """Puts the worker of one usage source together.

    Raises:
        KeyFileError: where the key of hashed namespaces cannot be read.
        UnknownFormatError: where no map describes the source's format.
    """
    usage_map = maps.get(source.format)
    key = b"" if source.namespaces.key_file is None else read_key(source.namespaces.key_file)
    fingerprints = Window(source.fingerprint_window_seconds) if "leading_fingerprint" in source.fields else None
    return Ingest(
        source.name,
        follower=Follower(
            source.paths,
            recorder.cursors(cursor_kind(LOG, source.name)),
            line_limit=source.line_limit_bytes,
            clock=monotonic,
        ),
        normaliser=Normaliser(
            usage_map,
            fields=source.fields,
            provider=source.provider,
            models=source.models,
            protect=Protector(allow=source.namespaces.allow, buckets=source.namespaces.buckets, key=key),
            hash_key=key,
            keep_raw=source.quarantine_file is not None,
        ),
        merger=Merger(
            usage_map,
            input_includes_cache=source.input_includes_cache,
            settle_seconds=source.settle_seconds,
            dedupe_records=source.dedupe_records,
        ),
        counting=Counting(
            release=release,
            prices=prices,
            eligibility=Eligibility(inventory, block_size_tokens=source.block_size_tokens),
            bands=source.ttft_bands,
            fingerprints=fingerprints,
        ),
        recorder=recorder,
        fingerprints=fingerprints,
        quarantine=None if source.quarantine_file is None else QuarantineFile(source.quarantine_file),
        clock=clock,
    )


def read_key(path: Path) -> bytes:
    """The key in a file, without the newline that editors add.

    Raises:
        KeyFileError: where the file cannot be read or is empty.
    """
    try:
        key = path.read_bytes().strip()
    except OSError as error:
        raise KeyFileError(path, (error.strerror or "an error").lower()) from error
    if not key:
        raise KeyFileError(path, "an empty file")
    return key[:KEY_LIMIT]
