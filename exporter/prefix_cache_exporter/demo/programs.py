"""Other people's programs that the demo runs: found on the path, started on loopback, ended with it."""

from __future__ import annotations

import shutil
import socket
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PROMETHEUS = ("prometheus",)
ALERTMANAGER = ("alertmanager", "prometheus-alertmanager")
"""Names of the programs; Debian prefixes the second."""
_PATIENCE_SECONDS = 5.0


def find(names: Sequence[str]) -> str | None:
    """The first of these programs that is installed."""
    return next((found for name in names if (found := shutil.which(name))), None)


def free_port() -> int:
    """A loopback port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Program:
    """A running program; it ends with the `with` block.

    Args:
        arguments: the program and its arguments.
        log: takes all it prints.
    """

    def __init__(self, arguments: Sequence[str], log: Path) -> None:
        self._log = log.open("wb")
        self._process = subprocess.Popen(  # noqa: S603  # programs found on the path, arguments of ours
            arguments, stdin=subprocess.DEVNULL, stdout=self._log, stderr=subprocess.STDOUT, start_new_session=True
        )

    @property
    def ended(self) -> int | None:
        """Its exit code, None while it runs."""
        return self._process.poll()

    def stop(self) -> None:
        """Ends it, politely first."""
        self._process.terminate()
        try:
            self._process.wait(_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()
