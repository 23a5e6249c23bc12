"""What the demo puts on stage: two servers and their traffic, the exporter, Prometheus and Alertmanager."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Self

from prefix_cache_exporter.config.model import DEFAULT_PORT
from prefix_cache_exporter.pack.model import Alert
from prefix_cache_exporter.pack.rules import rule_files, rule_groups
from prefix_cache_exporter.pack.settings import default_settings
from prefix_cache_exporter.pack.settings import load_settings as load_pack
from prefix_cache_exporter.serve.settings import load_settings
from prefix_cache_exporter.serve.sidecar import Options, Sidecar
from prefix_cache_exporter.web.address import Address
from prefix_cache_exporter.web.server import WebServer

from . import workspace
from .alerts import pager
from .fleet import Server
from .programs import ALERTMANAGER, PROMETHEUS, Program, find, free_port
from .prompts import SEARCH_R7, SUPPORT_R41

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from wsgiref.types import WSGIApplication

    from .prompts import Revision

LOOPBACK = "127.0.0.1"
_TICK_SECONDS = 0.05


class Stage:
    """Everything that runs; it ends with the `with` block.

    Args:
        folder: for logs, configuration and data.
        page: takes a sentence whenever a person would be paged.
        programs: whether Prometheus and Alertmanager run too, where they are installed.

    Attributes:
        exporter: the exporter's address.
        sidecar: the exporter itself.
        prometheus, alertmanager: their addresses; None where they do not run.
    """

    def __init__(self, folder: Path, page: Callable[[str], None], *, programs: bool = True) -> None:
        self.prometheus: str | None = None
        self.alertmanager: str | None = None
        self._folder = folder
        self._stack = ExitStack()
        try:
            self._servers = self._start_servers()
            self.sidecar = self._start_exporter()
            self.exporter = f"http://{self.sidecar.web.addresses[0]}"
            if programs:
                self._start_programs(page)
        except BaseException:
            self._stack.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def release(self, revision: Revision) -> None:
        """Rolls a revision out: the release file first, then the server."""
        workspace.write_release(self._folder, revision)
        self._servers[revision.template].release(revision)

    def _start_servers(self) -> dict[str, Server]:
        start = time.time()
        servers = {
            revision.template: Server(
                version,
                revision,
                workspace.usage_log(self._folder, revision.template),
                per_second=per_second,
                seed=seed,
                start=start,
            )
            for seed, (version, revision, per_second) in enumerate(
                (("0.32.0", SUPPORT_R41, 12), ("0.28.0", SEARCH_R7, 6))
            )
        }
        ended = threading.Event()

        def work() -> None:
            while not ended.wait(_TICK_SECONDS):
                for server in servers.values():
                    server.advance(time.time())

        worker = threading.Thread(target=work, name="traffic", daemon=True)
        for server in servers.values():
            self._stack.callback(server.close)
        worker.start()
        self._stack.callback(worker.join)
        self._stack.callback(ended.set)
        return servers

    def _start_exporter(self) -> Sidecar:
        addresses = {}
        for template, server in self._servers.items():
            workspace.write_release(self._folder, server.revision)
            addresses[template] = f"http://{self._serve(server)}"
        try:
            return self._exporter_at(addresses, DEFAULT_PORT)
        except OSError:  # somebody else has the port
            return self._exporter_at(addresses, 0)

    def _exporter_at(self, addresses: dict[str, str], port: int) -> Sidecar:
        config = workspace.write_sidecar(self._folder, addresses, f"{LOOPBACK}:{port}")
        sidecar = Sidecar(partial(load_settings, config, {}, {}), Options(config_file=config, watch_seconds=1))
        try:
            sidecar.start()
        except BaseException:
            sidecar.close()
            raise
        self._stack.callback(sidecar.close)
        return sidecar

    def _start_programs(self, page: Callable[[str], None]) -> None:
        prometheus, alertmanager = find(PROMETHEUS), find(ALERTMANAGER)
        if prometheus is None:
            return
        rules = self._folder / "rules"
        rules.mkdir()
        settings = load_pack(workspace.write_pack(self._folder, _alert_names()))
        for name, content in rule_files(settings).items():
            (rules / name).write_text(content, "utf-8")
        target = None
        if alertmanager is not None:
            target = f"{LOOPBACK}:{free_port()}"
            config = workspace.write_alertmanager(self._folder, f"http://{self._serve(pager(page))}/")
            self._run(
                alertmanager,
                f"--config.file={config}",
                f"--storage.path={self._folder / 'alertmanager'}",
                f"--web.listen-address={target}",
                "--cluster.listen-address=",
            )
            self.alertmanager = f"http://{target}"
        at = f"{LOOPBACK}:{free_port()}"
        exporter = self.exporter.removeprefix("http://")
        config = workspace.write_prometheus(self._folder, exporter, rules, target)
        self._run(
            prometheus,
            f"--config.file={config}",
            f"--storage.tsdb.path={self._folder / 'prometheus'}",
            f"--web.listen-address={at}",
        )
        self.prometheus = f"http://{at}"

    def _run(self, program: str, *arguments: str) -> None:
        log = self._folder / f"{program.rpartition('/')[2]}.log"
        self._stack.callback(Program([program, *arguments], log).stop)

    def _serve(self, app: WSGIApplication) -> Address:
        web = WebServer(app, [Address(LOOPBACK, 0)])
        web.start()
        self._stack.callback(web.stop)
        return web.addresses[0]


def _alert_names() -> list[str]:
    files = rule_groups(default_settings()).values()
    return sorted(
        {rule.name for groups in files for group in groups for rule in group.rules if isinstance(rule, Alert)}
    )
