"""A sidecar in a process that is forked from one that has everything imported: up in a moment, killed in another."""

from __future__ import annotations

import multiprocessing
from functools import partial
from typing import Any

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["prefix_cache_exporter.serve.sidecar", "support.killable"])


def _serve(flags: dict[str, Any]) -> None:
    from prefix_cache_exporter.serve.settings import load_settings  # noqa: PLC0415  # in the forked process only
    from prefix_cache_exporter.serve.sidecar import Options, Sidecar  # noqa: PLC0415  # in the forked process only

    sidecar = Sidecar(partial(load_settings, None, flags, {}), Options(watch_seconds=0))
    sidecar.signals.install()
    sidecar.start()
    sidecar.run()


def start(flags: dict[str, Any]) -> multiprocessing.process.BaseProcess:
    """Starts a sidecar with settings in the shape of a configuration file."""
    process = _CONTEXT.Process(target=_serve, args=(flags,), daemon=True)
    process.start()
    return process
