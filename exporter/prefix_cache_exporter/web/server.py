from __future__ import annotations

import errno
import logging
import sys
import threading
import time
from typing import TYPE_CHECKING
from weakref import WeakSet

from cheroot.wsgi import Server

from prefix_cache_exporter.logs import fields

from .address import Address, bind_host
from .auth import Guard
from .tls import TlsAdapter
from .toolkit import WebConfig, WebConfigFile

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence
    from pathlib import Path
    from wsgiref.types import WSGIApplication

    from cheroot.server import HTTPConnection

_log = logging.getLogger(__name__)

_THREADS = 4
"""Requests answered at the same time, per address: two Prometheus servers, a probe and a person."""
_TIMEOUT_SECONDS = 10
_BACKLOG = 32
_LARGEST_HEADER = 64 * 1024
_LARGEST_BODY = 64 * 1024
_SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_SHORTAGE_PAUSE_SECONDS = 0.1
_SHORTAGE_SAID_SECONDS = 60.0
_OPEN = WebConfig()


class ListenError(OSError):
    """An address that the system does not let us listen on.

    Attributes:
        number: which of the addresses, from 0 on.
        address: where it was to be.
        reason: what the system says.
    """

    def __init__(self, number: int, address: Address, reason: str) -> None:
        self.number, self.address, self.reason = number, address, reason
        super().__init__(f"{address}: {reason}")


class WebServer:
    """The exporter's HTTP servers, one per address, over one application.

    Args:
        app: the pages.
        addresses: where to listen; port 0 lets the system choose.
        config_file: a web configuration in the exporter-toolkit's format.

    Raises:
        DocumentError: where the web configuration cannot be used.
    """

    def __init__(self, app: WSGIApplication, addresses: Sequence[Address], config_file: Path | None = None) -> None:
        self._file = None if config_file is None else WebConfigFile(config_file)
        guarded = Guard(app, self._current)
        self._servers = [_Server(address, guarded, self._adapter()) for address in addresses]
        self._threads: list[threading.Thread] = []

    @property
    def scheme(self) -> str:
        """`https` where TLS is in force."""
        return "http" if self._current().tls is None else "https"

    @property
    def addresses(self) -> list[Address]:
        """Where the servers listen, with the ports the system chose."""
        return [Address(*server.bind_addr[:2]) for server in self._servers]

    def start(self) -> None:
        """Listens on every address.

        Raises:
            ListenError: where an address cannot be listened on; none is, then.
        """
        for number, server in enumerate(self._servers):
            try:
                server.prepare()
            except OSError as error:
                self.stop()
                raise ListenError(number, server.address, server.refusal or str(error)) from error
        for server in self._servers:
            thread = threading.Thread(target=server.serve, name=f"web {server.bind_addr}", daemon=True)
            thread.start()
            self._threads.append(thread)
        for address in self.addresses:
            _log.info("listening", extra=fields(address=address, scheme=self.scheme))

    def stop(self) -> None:
        """Lets answers in progress end, and listens no more."""
        for server in self._servers:
            server.stop()
        for thread in self._threads:
            thread.join()

    def _current(self) -> WebConfig:
        return _OPEN if self._file is None else self._file.current()

    def _adapter(self) -> TlsAdapter | None:
        return None if self._file is None else TlsAdapter(lambda: self._current().tls)


class _Server(Server):
    """A cheroot server with the bounds of a metrics endpoint, logging like the rest of the program."""

    max_request_header_size = _LARGEST_HEADER
    max_request_body_size = _LARGEST_BODY

    def __init__(self, address: Address, app: WSGIApplication, adapter: TlsAdapter | None) -> None:
        super().__init__(
            (bind_host(address), address.port),
            app,
            numthreads=_THREADS,
            max=_THREADS,
            request_queue_size=_BACKLOG,
            timeout=_TIMEOUT_SECONDS,
            shutdown_timeout=2,
            server_name="prefix-cache-exporter",
        )
        self.ssl_adapter = adapter
        self.address, self.refusal = address, ""
        self._greeted: WeakSet[HTTPConnection] = WeakSet()
        self._said_at = float("-inf")

    def process_conn(self, conn: HTTPConnection) -> None:
        """Gives a connection to a worker once there is something to read.

        cheroot gives new ones away at once: four port scanners that say nothing would keep Prometheus waiting for
        ten seconds.
        """
        if conn in self._greeted:
            super().process_conn(conn)
        else:
            self._greeted.add(conn)
            self.put_conn(conn)

    def bind_socket(  # type: ignore[override]  # static in cheroot, which asks the server for it
        self, socket_: socket.socket, bind_addr: tuple[str, int]
    ) -> socket.socket:
        """Binds; cheroot would leave the socket open where it cannot, and put its own words around the reason."""
        try:
            socket_.bind(bind_addr)
        except OSError as error:
            socket_.close()
            self.refusal = (error.strerror or "an error").lower()
            raise
        return socket_

    def error_log(self, msg: str = "", level: int = logging.INFO, traceback: bool = False) -> None:
        """What clients do wrong is no event of ours, what goes wrong inside is."""
        error = sys.exc_info()[1]
        if isinstance(error, OSError) and error.errno in _SHORTAGES:
            self._wait_out(error)
            return
        _log.log(logging.DEBUG if level < logging.ERROR else level, "%s", msg, exc_info=traceback)

    def _wait_out(self, shortage: OSError) -> None:
        """Lets open connections end where no new one can be had; cheroot would ask again at once, and log each time."""
        now = time.monotonic()
        if now - self._said_at >= _SHORTAGE_SAID_SECONDS:
            self._said_at = now
            reason = (shortage.strerror or "an error").lower()
            _log.error("no connection can be accepted", extra=fields(address=self.address, reason=reason))
        time.sleep(_SHORTAGE_PAUSE_SECONDS)
