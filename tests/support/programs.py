"""Debian's Prometheus and Alertmanager on loopback ports, and a webhook that keeps what it gets."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

import requests

from support.ports import free_port
from support.process import wait_until

ALERTMANAGER = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
PROMETHEUS = shutil.which("prometheus")


class Program:
    """A server of somebody else's; a context manager that waits until it is ready and kills it at the end."""

    def __init__(self, command, port, ready, log):
        self.command, self.url, self.ready, self.log = command, f"http://127.0.0.1:{port}", ready, log

    def __enter__(self) -> Self:
        self._file = self.log.open("w")
        self._process = subprocess.Popen(self.command, stdout=self._file, stderr=subprocess.STDOUT)
        try:
            wait_until(self._answers)
        except AssertionError:
            self.__exit__()
            raise AssertionError(self.log.read_text()[-2000:]) from None
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        self._file.close()

    def _answers(self):
        try:
            return requests.get(f"{self.url}{self.ready}", timeout=5).ok
        except requests.ConnectionError:
            return False

    def get(self, path, **parameters):
        return requests.get(f"{self.url}{path}", params=parameters, timeout=10).json()


def alertmanager(folder, config):
    """An Alertmanager that speaks to nobody but its receivers."""
    path, port = folder / "alertmanager.yml", free_port()
    path.write_text(config)
    flags = [
        f"--config.file={path}",
        f"--storage.path={folder / 'alertmanager'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--cluster.listen-address=",
    ]
    return Program([ALERTMANAGER, *flags], port, "/-/ready", folder / "alertmanager.log")


def prometheus(folder, config):
    """A Prometheus over a fresh folder."""
    path, port = folder / "prometheus.yml", free_port()
    path.write_text(config)
    flags = [
        f"--config.file={path}",
        f"--storage.tsdb.path={folder / 'prometheus'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    return Program([PROMETHEUS, *flags], port, "/-/ready", folder / "prometheus.log")


class Webhook:
    """Takes Alertmanager's notifications; `alerts` are all that came, in order, with their receiver."""

    def __init__(self):
        self.alerts = []
        keep = self.alerts

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                keep.extend({**alert, "receiver": body["receiver"]} for alert in body["alerts"])
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
