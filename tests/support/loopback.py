"""HTTP servers on loopback that answer byte by byte as a test says."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    Answer = Callable[[socket.socket, bytes], None]


def say(*pieces: bytes) -> Answer:
    """An answer that sends these bytes and hangs up."""

    def answer(connection: socket.socket, _: bytes) -> None:
        connection.sendall(b"".join(pieces))

    return answer


def http(status: str = "200 OK", body: bytes = b"", **headers: str) -> Answer:
    """A well-formed answer; header names have underscores for hyphens."""
    headers.setdefault("Content_Length", str(len(body)))
    lines = [f"HTTP/1.1 {status}", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items()), "", ""]
    return say("\r\n".join(lines).encode(), body)


class Loopback:
    """Answers each connection in turn; the last answer stands for all that follow. A context manager.

    Attributes:
        url: where it listens.
        requests: the head of each request that came.
        until: how a request's head ends.
    """

    def __init__(self, *answers: Answer, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> None:
        self._answers = list(answers)
        self._listener = socket.create_server((host, 0))
        self._tls = tls
        self.requests: list[bytes] = []
        self.until = b"\r\n\r\n"
        self.port = self._listener.getsockname()[1]
        self.url = f"http{'s' if tls else ''}://{host}:{self.port}"
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with suppress(OSError), connection:
                if self._tls:
                    connection = self._tls.wrap_socket(connection, server_side=True)  # takes it over
                with connection:
                    self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        head = b""
        while self.until not in head:
            piece = connection.recv(65536)
            if not piece:
                return
            head += piece
        self.requests.append(head)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        answer(connection, head)
