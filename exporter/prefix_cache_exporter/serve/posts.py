"""Which workers a configuration asks for."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from prefix_cache_exporter.engine.poller import EnginePoller

from .crew import Post
from .loop import Loop
from .releases import SourceReleases
from .usage_posts import usage_posts

if TYPE_CHECKING:
    from collections.abc import Callable

    from prefix_cache_exporter.config import Config, EngineSource
    from prefix_cache_exporter.recorder import Recorder
    from prefix_cache_exporter.release_board import ReleaseBoard

    from .loop import Worker


def posts(config: Config, recorder: Recorder, board: ReleaseBoard, on_error: Callable[[str], None]) -> dict[str, Post]:
    """One post per source.

    Everything a worker needs is loaded here, before any of the old ones is told to end.

    Raises:
        DocumentError: where what the configuration names cannot be used.
    """
    found: dict[str, Post] = {}
    for source in config.engines:
        releases = SourceReleases(source.name, source.release or config.release, board)
        wants = (source, source.release or config.release)
        found[source.name] = Post(wants, partial(_engine, source, recorder, releases, on_error))
    return found | usage_posts(config, recorder, board, on_error)


def _engine(
    source: EngineSource, recorder: Recorder, releases: SourceReleases, on_error: Callable[[str], None]
) -> Worker:
    return Loop(f"engine {source.name}", EnginePoller(source, recorder, releases), on_error)
