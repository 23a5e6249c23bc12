"""Which workers a configuration asks for."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from prefix_cache_exporter.config.checks import check_map_folder
from prefix_cache_exporter.documents import DocumentError
from prefix_cache_exporter.engine.maps import load_maps
from prefix_cache_exporter.engine.poller import EnginePoller
from prefix_cache_exporter.mistakes import Mistakes

from .crew import Place, Post
from .loop import Loop
from .releases import SourceReleases
from .watch import Watch, files_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from prefix_cache_exporter.config.model import Config, EngineSource
    from prefix_cache_exporter.engine.maps import MapSet
    from prefix_cache_exporter.recorder import Recorder
    from prefix_cache_exporter.release_board import ReleaseBoard

    from .loop import Worker


def posts(
    config: Config, recorder: Recorder, board: ReleaseBoard, on_error: Callable[[str], None]
) -> dict[Place, Post]:
    """One post per plane of a source.

    Everything a worker needs is loaded here, before any of the old ones is told to end.

    Raises:
        DocumentError: where what the configuration names cannot be used.
    """
    check_map_folders(config)
    wrong = Mistakes()
    found: dict[Place, Post] = {}
    with wrong:
        found |= engine_posts(config, recorder, board, on_error)
    if config.usage:
        # A third of the program: a sidecar without usage logs starts faster and stays smaller without it.
        from .usage_posts import usage_posts  # noqa: PLC0415  # with usage sources alone

        with wrong:
            found |= usage_posts(config, recorder, board, on_error)
    wrong.refuse()
    return found


def check_map_folders(config: Config) -> None:
    """Holds the folders of own maps against their layout.

    Raises:
        DocumentError: for all that have none.
    """
    wrong = Mistakes()
    for place, folder in enumerate(config.maps.folders):
        with wrong:
            check_map_folder(folder, config.origin, f"maps.folders[{place}]")
    wrong.refuse()


def engine_posts(
    config: Config, recorder: Recorder, board: ReleaseBoard, on_error: Callable[[str], None]
) -> dict[Place, Post]:
    """One post per engine.

    Raises:
        DocumentError: where a map, or something an engine's configuration names, cannot be used.
    """
    if not config.engines:
        return {}
    maps = load_maps(config.maps.of("vllm"))
    files = Watch()
    files.changed(files_of(config, None))
    found: dict[Place, Post] = {}
    wrong = Mistakes()
    for place, source in enumerate(config.engines):
        with wrong:
            _check(source, maps, config.origin, f"engines[{place}]")
            spec = source.release or config.release
            releases = SourceReleases(source.name, "engine", spec, board)
            hire = partial(_engine, source, recorder, releases, maps, on_error)
            found[Place("engine", source.name)] = Post((source, spec, files.seen), hire)
    wrong.refuse()
    return found


def _check(source: EngineSource, maps: MapSet, file: str, at: str) -> None:
    wrong = Mistakes()
    newest = maps.resolve(maps.files[-1])
    styles = ("auto", *(style.name for style in newest.styles)) if newest else ()
    if source.name_style not in styles:
        wrong.add(DocumentError(file, f"{at}.name_style", source.name_style, f"one of {', '.join(styles)}"))
    if source.engine_version is not None and maps.resolve(source.engine_version) is None:
        expected = f"a version that a map describes, {maps.files[0]} or newer"
        wrong.add(DocumentError(file, f"{at}.engine_version", source.engine_version, expected))
    wrong.refuse()


def _engine(
    source: EngineSource,
    recorder: Recorder,
    releases: SourceReleases,
    maps: MapSet,
    on_error: Callable[[str], None],
) -> Worker:
    return Loop(f"engine {source.name}", EnginePoller(source, recorder, releases, maps), on_error)
