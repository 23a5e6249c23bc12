"""The two processes of a run: a vLLM server, and the sidecar beside it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any
from urllib.error import URLError
from urllib.request import urlopen

import yaml

from e2e_vllm.model import build

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

START_SECONDS = 300
SERVER = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_HOST_IP": "127.0.0.1",
    "GLOO_SOCKET_IFNAME": "lo",
    "OMP_NUM_THREADS": "1",
    "VLLM_TARGET_DEVICE": "cpu",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    # A list of cores is understood by every release; `nobind` is not before 0.11.0, and fails in 0.20.2.
    "VLLM_CPU_OMP_THREADS_BIND": str(max(os.sched_getaffinity(0))),
    "VLLM_SERVER_DEV_MODE": "1",  # POST /reset_prefix_cache
}


def say(text: str) -> None:
    """Prints a line at once: a run takes minutes, and somebody watches."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def vllm(python: Path, folder: Path, options: list[str]) -> Iterator[int]:
    """A server of the tiny model; yields its port. Its output goes to `server.log`."""
    model = build(folder / "model")
    port = free_port()
    command = [
        *(str(python), "-m", "vllm.entrypoints.openai.api_server"),  # the `vllm` script looks for another distribution
        *("--model", str(model), "--served-model-name", "tiny", "--load-format", "dummy", "--dtype", "bfloat16"),
        *("--host", "127.0.0.1", "--port", str(port), "--enforce-eager"),
        *("--enable-prefix-caching", "--enable-prompt-tokens-details"),
        *options,
    ]
    environment = SERVER | os.environ | {"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}
    # The sidecar's own environment must not reach vLLM's.
    environment = {name: value for name, value in environment.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    with _running(command, folder / "server.log", environment) as process:
        await_status(f"http://127.0.0.1:{port}/health", START_SECONDS, folder / "server.log", process)
        yield port


@contextmanager
def sidecar(folder: Path, url: str) -> Iterator[int]:
    """The exporter, polling a server several times a second; yields its port."""
    port = free_port()
    config: dict[str, Any] = {
        "web": {"listen_address": [f"127.0.0.1:{port}"]},
        "state": {"path": str(folder / "state.db"), "hold_seconds": 0, "commit_seconds": 0.1},
        "engines": [{"name": "vllm", "url": url, "poll_seconds": 0.2}],
        "release": {"template": "e2e", "template_revision": "r1"},
        "shutdown": {"grace_seconds": 1},
    }
    (folder / "state.db").unlink(missing_ok=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(config), "utf-8")
    command = [sys.executable, "-m", "prefix_cache_exporter", "serve", "--config.file", str(folder / "config.yaml")]
    with _running(command, folder / "sidecar.log", os.environ) as process:
        await_status(f"http://127.0.0.1:{port}/-/ready", 30, folder / "sidecar.log", process)
        yield port


@contextmanager
def _running(command: list[str], log: Path, environment: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=log.parent,
            start_new_session=True,
        ) as process,
    ):
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):  # it has ended, and all it started
                os.killpg(process.pid, signal.SIGTERM)
                try:
                    process.wait(30)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)


def await_status(url: str, seconds: float, log: Path, process: subprocess.Popen[bytes]) -> None:
    """Waits until a page answers.

    Raises:
        TimeoutError: with the end of the log; at once where the process has ended.
    """
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        try:
            with urlopen(url, timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.25)
    tail = "\n".join(log.read_text("utf-8", "replace").splitlines()[-30:])
    how = "in time" if process.returncode is None else f"but exit code {process.returncode}"
    raise TimeoutError(f"no answer from {url} {how}; the end of {log}:\n{tail}")
