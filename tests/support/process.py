"""The exporter as a process of its own, on a loopback port that the system chooses."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Self

import requests

if TYPE_CHECKING:
    import signal
    from collections.abc import Callable

_LISTENING = re.compile(r"\blistening\b.*127\.0\.0\.1:(\d+)")
WAIT = 30.0


def wait_until(holds: Callable[[], object], seconds: float = WAIT) -> None:
    """Waits until something holds; a test fails where it does not in time."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


class Exporter:
    """A running `serve`. A context manager; what is still running at its end is killed."""

    def __init__(self, *flags: str, environment: dict[str, str] | None = None) -> None:
        command = [sys.executable, "-m", "prefix_cache_exporter", "serve", "--web.listen-address=127.0.0.1:0", *flags]
        self.process = subprocess.Popen(
            command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, env=environment
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        try:
            wait_until(lambda: self._port() or self.process.poll() is not None)
            if not self._port():  # it ended: what it wrote before says why
                self._reader.join()
                assert self._port(), f"ended with {self.process.returncode} before it listened:\n{self.log}"
        except AssertionError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join()
        if self.process.stderr is not None:
            self.process.stderr.close()

    @property
    def log(self) -> str:
        """Everything that was written to standard error."""
        return "\n".join(self.lines)

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self._port()}"

    def page(self) -> str:
        """Its metrics."""
        return requests.get(f"{self.url}/metrics", timeout=10).text

    def total(self, name: str, **labels: str) -> float:
        """The sum of a series' samples that have these labels."""
        return total(self.page(), name, **labels)

    def send(self, number: signal.Signals) -> None:
        """Sends a signal."""
        self.process.send_signal(number)

    def end(self, seconds: float = WAIT) -> int:
        """Waits for the end. Returns the exit code."""
        code = self.process.wait(seconds)
        self._reader.join()
        return code

    def _port(self) -> str | None:
        return next((match[1] for line in self.lines if (match := _LISTENING.search(line))), None)

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line.rstrip("\n"))


def total(page: str, name: str, **labels: str) -> float:
    """The sum of a series' samples on a page that have these labels."""
    found = 0.0
    for line in page.splitlines():
        text, _, value = line.rpartition(" ")
        head, _, pairs = text.partition("{")
        if head == name and all(f'{key}="{said}"' in pairs for key, said in labels.items()):
            found += float(value)
    return found
