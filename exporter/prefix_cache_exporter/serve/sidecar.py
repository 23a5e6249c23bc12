from __future__ import annotations

import logging
import platform
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

from prefix_cache_exporter import __version__, measures
from prefix_cache_exporter.collector import LedgerCollector
from prefix_cache_exporter.config.shown import masked
from prefix_cache_exporter.documents import DocumentError
from prefix_cache_exporter.engine.maps import load_maps
from prefix_cache_exporter.engine.words import caveat_sentences
from prefix_cache_exporter.labels import Limits
from prefix_cache_exporter.logs import fields
from prefix_cache_exporter.recorder import Change, Recorder
from prefix_cache_exporter.release_board import ReleaseBoard
from prefix_cache_exporter.state import Store
from prefix_cache_exporter.status.history import History
from prefix_cache_exporter.status.page import StatusPage
from prefix_cache_exporter.web.address import parse_address
from prefix_cache_exporter.web.server import WebServer
from prefix_cache_exporter.web.site import links, site

from .crew import BusyError, Crew
from .ending import Event, Signals, drain
from .housekeeping import Housekeeping
from .loop import Loop
from .posts import posts
from .settings import prefixes
from .watch import Watch, files_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from prometheus_client.registry import Collector

    from prefix_cache_exporter.config.model import Config

_log = logging.getLogger(__name__)
_HEALTH = measures.EXPORTER

_RESERVE = 0.1
"""Share of the grace period that is kept for writing state and closing sockets."""


@dataclass(frozen=True, slots=True)
class Options:
    """What does not change while the process lives.

    Attributes:
        version: the line that `--version` prints.
        revision: which revision of the source the program was made from.
        config_file: watched, where there is one.
        watch_seconds: how often; 0 leaves reloading to SIGHUP and `/-/reload`.
        runtime_metrics: whether process and interpreter metrics are shown.
    """

    version: str = f"prefix-cache-exporter {__version__}"
    revision: str = "unknown"
    config_file: Path | None = None
    watch_seconds: float = 30.0
    runtime_metrics: bool = True


class Sidecar:
    """The whole process but for the command line: everything is put together here.

    Args:
        load: reads the configuration anew; raises DocumentError for a mistake.
        options: what does not change.

    Raises:
        DocumentError: where the configuration, or what it names, cannot be used.
    """

    def __init__(self, load: Callable[[], Config], options: Options | None = None) -> None:
        self._load, self._options = load, options or Options()
        self._config = config = load()
        self.signals = Signals()
        self._reloading, self._began = threading.Lock(), time.monotonic()
        self._ready = self._open = False
        limits = Limits(config.limits.labels, config.limits.label_length, config.limits.series)
        self.recorder = Recorder(
            Store(config.state.path),
            limits,
            hold_seconds=config.state.hold_seconds,
            expire_seconds=config.state.expire_seconds,
        )
        self._board = ReleaseBoard(self.recorder)
        self._crew = Crew(self.recorder)
        self._history = History(self.recorder)
        self._watch, self._watched = Watch(), time.monotonic()
        chores = (self._board.publish, self._history.look, self._look_for_changes)
        self._housekeeping = Housekeeping(self.recorder, chores, config.state.commit_seconds)
        self._housekeeper = Loop("housekeeping", self._housekeeping, self.count_error)
        self.ledger = LedgerCollector(self.recorder)
        self.runtime: Sequence[Collector] = (_runtime(),) if self._options.runtime_metrics else ()
        prefix, base = prefixes(config)
        path = config.web.telemetry_path
        self._words: dict[str, str] | None = None
        self._status = StatusPage(
            self.recorder,
            self._history,
            version=__version__,
            links=links(path, base),
            describe_caveat=self._describe_caveat,
        )
        self.web = WebServer(
            site(self, telemetry_path=path, prefix=prefix),
            [parse_address(address) for address in config.web.listen_address],
            config.web.config_file,
        )

    # What the pages ask.

    @property
    def version(self) -> str:
        """The line that `--version` prints."""
        return self._options.version

    @property
    def is_ready(self) -> bool:
        """Whether configuration and maps are loaded."""
        return self._ready

    @property
    def is_caught_up(self) -> bool:
        """Whether the ledger's counters may be shown; once they may, they always may."""
        if not self._open:
            waited = time.monotonic() - self._began >= self._config.state.catch_up_seconds
            if waited and not self._crew.caught_up:
                _log.warning("not caught up in time, showing counters all the same")
            self._open = self._ready and (waited or self._crew.caught_up)
        return self._open

    def status_page(self) -> bytes:
        """The page for a person."""
        return self._status.render()

    def shown_config(self) -> str:
        """The configuration in force, secrets masked."""
        return masked(self._config)

    def count_error(self, worker: str) -> None:
        """Counts an error of the exporter itself."""
        change = Change()
        change.add(_HEALTH["internal_errors"], {"worker": worker}, 1)
        self.recorder.apply(change)

    def reload(self) -> str | None:
        """Loads the configuration anew. What cannot be used leaves the old one in force; returns what is wrong."""
        with self._reloading:
            try:
                config = self._load()
                self._watch.changed(files_of(config, self._options.config_file))
                self._crew.assign(posts(config, self.recorder, self._board, self.count_error))
            except (DocumentError, BusyError) as error:
                self.recorder.set_gauge(_HEALTH["config_last_reload_successful"], {}, 0)
                _log.error("configuration not taken, the old one stays in force: %s", error)
                return str(error)
            except Exception:  # noqa: BLE001  # ours: it must be seen, and not end the thread without a word
                self.recorder.set_gauge(_HEALTH["config_last_reload_successful"], {}, 0)
                self.count_error("reload")
                _log.exception("configuration not taken whole")
                return "an error of the exporter itself; its log has it"
            if (config.state.path, config.limits, config.web) != (
                self._config.state.path,
                self._config.limits,
                self._config.web,
            ):
                _log.warning("changes of web, limits and the state's path wait for a restart")
            self._config, self._words = config, None
            self._housekeeping.seconds = config.state.commit_seconds
            self._note_loaded()
            _log.info("configuration loaded")
            return None

    # The process's life.

    def start(self) -> None:
        """Begins to work and to answer. What keeps it from that leaves nothing running: no port, no thread.

        Raises:
            DocumentError: where what the configuration names cannot be used.
            ListenError: where an address cannot be listened on.
        """
        try:
            self._begin()
        except BaseException:
            self.close()
            raise

    def _begin(self) -> None:
        _log.info("starting", extra=fields(version=__version__, revision=self._options.revision))
        build = {
            "version": __version__,
            "revision": self._options.revision,
            "python_version": platform.python_version(),
        }
        self.recorder.set_gauge(_HEALTH["build_info"], build, 1)
        jobs = posts(self._config, self.recorder, self._board, self.count_error)
        self.web.start()
        self._watch.changed(files_of(self._config, self._options.config_file))
        self._crew.assign(jobs)
        self._housekeeper.start()
        self._note_loaded()
        self._ready = True
        if not jobs:
            _log.warning("no source is configured: name one with --vllm or in a configuration file")

    def run(self) -> None:
        """Works until a signal asks for the end, then drains: goes on polling and reading while there is something."""
        while (event := self.signals.wait()) is not Event.END:
            if event is Event.RELOAD:  # in a thread of its own, so that the end is never kept waiting
                threading.Thread(target=self.reload, name="reload", daemon=True).start()
        seconds = self._config.shutdown.grace_seconds
        _log.info("ending", extra=fields(grace_seconds=seconds))
        outcome = drain(self._crew.workers, self.signals, seconds * (1 - _RESERVE))
        self.close()
        _log.info("ended", extra=fields(drained=outcome))

    def close(self) -> None:
        """Writes state and stops answering. Workers are stopped, not waited for."""
        for worker in self._crew.workers:
            worker.stop()
        self._housekeeper.stop()
        self.recorder.close()
        self.web.stop()

    def _describe_caveat(self, id_: str) -> str:
        if self._words is None:  # only whoever looks at the page needs them
            self._words = caveat_sentences(load_maps(self._config.maps.of("vllm")))
        return self._words.get(id_, id_)

    def _note_loaded(self) -> None:
        self.recorder.set_gauge(_HEALTH["config_last_reload_successful"], {}, 1)
        self.recorder.set_gauge(_HEALTH["config_last_reload_success_timestamp_seconds"], {}, time.time())

    def _look_for_changes(self) -> None:
        seconds, now = self._options.watch_seconds, time.monotonic()
        if seconds and now - self._watched >= seconds:
            self._watched = now
            if self._watch.changed(files_of(self._config, self._options.config_file)):
                self.signals.put(Event.RELOAD)


def _runtime() -> CollectorRegistry:
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry
