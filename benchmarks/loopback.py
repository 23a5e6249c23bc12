"""A server on loopback that stands for vLLM: `/metrics` gives pages in turn, `/version` their version."""

from __future__ import annotations

import json
import socket
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle
from threading import Thread
from typing import TYPE_CHECKING

from benchmarks.pages import TEXT, VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.pages import Made


@contextmanager
def serving(pages: list[Made]) -> Iterator[str]:
    """Serves in a thread; yields the address."""
    bodies = cycle(made.body for made in pages)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the name that http.server looks for
            known = self.path == "/version"
            body = json.dumps({"version": VERSION}).encode() if known else next(bodies)
            self.send_response(200)
            self.send_header("Content-Type", "application/json" if known else TEXT)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def free_port() -> int:
    """A port that was free just now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
