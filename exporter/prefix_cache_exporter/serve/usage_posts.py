"""The workers of usage sources, and everything they need."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING

from prefix_cache_exporter.documents import DocumentError
from prefix_cache_exporter.mistakes import Mistakes
from prefix_cache_exporter.usage.inventory import load_inventory
from prefix_cache_exporter.usage.key_file import read_key
from prefix_cache_exporter.usage.maps.book import MapBook, UnknownFormatError
from prefix_cache_exporter.usage.prices.book import PriceBook
from prefix_cache_exporter.usage.sources import build_ingest

from .crew import Place, Post
from .loop import Loop
from .releases import SourceReleases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from prefix_cache_exporter.config.model import Config, UsageSource
    from prefix_cache_exporter.recorder import Recorder
    from prefix_cache_exporter.release import Release
    from prefix_cache_exporter.release_board import ReleaseBoard
    from prefix_cache_exporter.usage.ingest import Ingest
    from prefix_cache_exporter.usage.inventory import Inventory
    from prefix_cache_exporter.usage.maps.model import UsageMap


class UsageSteps:
    """Looks at the release in force before each step of a source's worker.

    Args:
        releases: says which release is in force.
        hire: makes the worker, given what says the release.
    """

    def __init__(self, releases: SourceReleases, hire: Callable[[Callable[[], Release]], Ingest]) -> None:
        self._releases = releases
        self._in_force = releases.look().in_force
        self._ingest = hire(lambda: self._in_force)

    @property
    def caught_up(self) -> bool:
        """Whether everything that was in the logs at the start has been counted."""
        return self._ingest.caught_up

    def step(self, *, draining: bool) -> float | None:
        """One poll of the logs."""
        self._in_force = self._releases.look().in_force
        return self._ingest.step(draining=draining)

    def close(self) -> None:
        """Closes the log files."""
        self._ingest.close()


@dataclass(frozen=True, slots=True)
class _Needs:
    """What a source's worker is made from, loaded and checked."""

    source: UsageSource
    usage_map: UsageMap
    find: Callable[[str], UsageMap | None]
    key: bytes
    prices: PriceBook
    inventory: Inventory | None


def usage_posts(
    config: Config, recorder: Recorder, board: ReleaseBoard, on_error: Callable[[str], None]
) -> dict[Place, Post]:
    """One post per usage source.

    Raises:
        DocumentError: where what the configuration names cannot be used.
    """
    if not config.usage:
        return {}
    wrong = Mistakes()
    maps = prices = inventory = None
    with wrong:
        maps = MapBook(config.maps.of("usage"))
    with wrong:
        prices = PriceBook.load(config.prices.files, currency=config.prices.currency)
    if config.inventory.file is not None:
        with wrong:
            inventory = load_inventory(config.inventory.file)
    files = _digest(config)
    found: dict[Place, Post] = {}
    for place, source in enumerate(config.usage):
        key = b""
        with wrong:
            key = b"" if source.namespaces.key_file is None else read_key(source.namespaces.key_file)
        if maps is None:
            continue
        with wrong:
            usage_map = _map(maps, source.format, config.origin, f"usage[{place}].format")
            spec = source.release or config.release
            releases = SourceReleases(source.name, "usage", spec, board)
            if prices is not None:
                needs = _Needs(source, usage_map, partial(_find, maps), key, prices, inventory)
                work = partial(_usage, needs, recorder, releases, on_error)
                found[Place("usage", source.name)] = Post((source, spec, key, files), work)
    wrong.refuse()
    return found


def _usage(needs: _Needs, recorder: Recorder, releases: SourceReleases, on_error: Callable[[str], None]) -> Loop:
    def hire(release: Callable[[], Release]) -> Ingest:
        return build_ingest(
            needs.source,
            usage_map=needs.usage_map,
            key=needs.key,
            recorder=recorder,
            release=release,
            prices=needs.prices,
            inventory=needs.inventory,
            find=needs.find,
        )

    return Loop(f"usage {needs.source.name}", UsageSteps(releases, hire), on_error)


def _find(maps: MapBook, name: str) -> UsageMap | None:
    try:
        return maps.get(name)
    except UnknownFormatError:
        return None


def _map(maps: MapBook, name: str, file: str, place: str) -> UsageMap:
    try:
        return maps.get(name)
    except UnknownFormatError as error:
        raise DocumentError(file, place, name, _expected(error)) from error


def _expected(error: UnknownFormatError) -> str:
    return " or ".join(error.near) if error.near else "a format that a usage map describes"


def _digest(config: Config) -> bytes:
    """Changes when any file that counting depends on does."""
    digest = blake2b()
    for file in _files(config):
        digest.update(str(file).encode() + b"\0" + (file.read_bytes() if file.is_file() else b"") + b"\0")
    return digest.digest()


def _files(config: Config) -> Iterator[Path]:
    yield from config.prices.files
    if config.inventory.file is not None:
        yield config.inventory.file
    for folder in config.maps.folders:
        yield from sorted(folder.rglob("*.yaml")) if folder.is_dir() else (folder,)
