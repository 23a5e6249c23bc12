from __future__ import annotations

import io
import ssl
from typing import TYPE_CHECKING, Any

from cheroot import errors
from cheroot.makefile import MakeFile
from cheroot.ssl import Adapter

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable


class _Socket(ssl.SSLSocket):
    def recv_into(self, buffer: Any, nbytes: int | None = None, flags: int = 0) -> int:
        """Reads, and tells cheroot of a failed handshake in its own words, so that it just hangs up."""
        try:
            return super().recv_into(buffer, nbytes, flags)
        except ssl.SSLError as error:
            raise errors.FatalSSLAlert(*error.args) from error


class TlsAdapter(Adapter):
    """Speaks TLS as the context in force says; plain HTTP where there is none.

    The handshake is left to the first read, which happens in a worker: a client that connects and says nothing must not
    keep the next one from being accepted.
    """

    def __init__(self, current: Callable[[], ssl.SSLContext | None]) -> None:
        super().__init__(None, None)
        self._current = current

    def wrap(self, sock: socket.socket) -> tuple[socket.socket, dict[str, str]]:
        """The socket to talk over, and what WSGI shall know of it."""
        context = self._current()
        if context is None:
            return sock, {}
        context.sslsocket_class = _Socket
        try:
            return context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False), self.get_environ()
        except OSError as error:  # the client is gone already
            raise errors.FatalSSLAlert(*error.args) from error

    def bind(self, sock: socket.socket) -> socket.socket:
        """Listening needs no TLS."""
        return sock

    def get_environ(self) -> dict[str, str]:
        """What WSGI shall know of a TLS connection."""
        return {"wsgi.url_scheme": "https", "HTTPS": "on"}

    def makefile(self, sock: socket.socket, mode: str = "r", bufsize: int = io.DEFAULT_BUFFER_SIZE) -> Any:
        """A file over the socket."""
        return MakeFile(sock, mode, bufsize)
