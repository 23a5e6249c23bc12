"""One deadline over a whole HTTP exchange.

`requests` bounds single socket operations: a server that drips a byte a second never exceeds it. Here the socket itself
is shut down when time is up, whatever it is doing then: shaking hands, sending headers, sending a body.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from contextvars import ContextVar
from threading import Timer
from typing import TYPE_CHECKING, Any, Self

from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection

if TYPE_CHECKING:
    from types import TracebackType

    from requests import Response

_current: ContextVar[Deadline] = ContextVar("deadline")


class Deadline:
    """Bounds the connections that this thread opens while the `with` block runs.

    Args:
        seconds: from entering the block.

    Attributes:
        expired: whether time ran out.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.expired = False
        self._connections: list[HTTPConnection] = []
        self._sockets: list[socket.socket | None] = []
        self._timer = Timer(seconds, self._expire)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._token = _current.set(self)
        self._timer.start()
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self._timer.cancel()
        _current.reset(self._token)

    def connecting(self, connection: HTTPConnection) -> None:
        """Notes a connection whose socket is about to come."""
        self._connections.append(connection)

    def connected(self, connection: HTTPConnection) -> None:
        """Notes a connection's socket; the connection itself lets go of it before the body is read."""
        self._sockets.append(connection.sock)
        if self.expired:  # while it connected
            self._expire()

    def _expire(self) -> None:
        self.expired = True
        for each in (*self._sockets, *(connection.sock for connection in self._connections)):
            if each is not None:
                with suppress(OSError):
                    socket.socket.shutdown(each, socket.SHUT_RDWR)  # beneath TLS, which would wait for the peer


class _Watched(HTTPConnection):
    def connect(self) -> None:
        _current.get().connecting(self)
        super().connect()
        _current.get().connected(self)


class _WatchedTls(HTTPSConnection):
    def connect(self) -> None:
        _current.get().connecting(self)
        super().connect()
        _current.get().connected(self)


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Watched


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _WatchedTls


class DeadlineAdapter(HTTPAdapter):
    """Connections that heed the `Deadline` in force; there must be one.

    Args:
        server_name: the name to ask for and to check in TLS, where it is not the URL's host.
    """

    def __init__(self, server_name: str | None = None) -> None:
        self._server_name = server_name
        super().__init__(max_retries=0)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """Makes the pools, as `HTTPAdapter` asks for."""
        if self._server_name:
            kwargs["server_hostname"] = self._server_name
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}

    def send(self, *args: Any, **kwargs: Any) -> Response:
        """Sends on a new connection: one kept from the last poll may be closed by the server at this very moment."""
        self.poolmanager.clear()
        return super().send(*args, **kwargs)
