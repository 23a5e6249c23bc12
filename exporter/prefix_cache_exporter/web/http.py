"""A request, a response and a table of routes: as much of HTTP as seven pages need, over WSGI."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from wsgiref.types import StartResponse, WSGIEnvironment

_log = logging.getLogger(__name__)

PLAIN = "text/plain; charset=utf-8"
HTML = "text/html; charset=utf-8"
_READ = ("GET", "HEAD")


@dataclass(frozen=True, slots=True)
class Request:
    """What a page needs to know of a request. `path` starts after the route prefix."""

    method: str
    path: str
    query: Mapping[str, Sequence[str]] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    """By lower-case name."""


@dataclass(frozen=True, slots=True)
class Response:
    """A whole answer; every one has a content type, since Prometheus 3 refuses a page without."""

    body: bytes | str = ""
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = PLAIN
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Route:
    """One page and the methods it answers to."""

    page: Callable[[Request], Response]
    methods: tuple[str, ...] = _READ


def error(status: HTTPStatus, detail: str = "", headers: tuple[tuple[str, str], ...] = ()) -> Response:
    """A short plain answer that says what went wrong and nothing about the inside."""
    return Response(f"{status.value} {status.phrase}{f': {detail}' if detail else ''}\n", status, headers=headers)


class App:
    """A WSGI application over a table of exact paths.

    Args:
        routes: pages by path, without prefix.
        prefix: what all paths begin with, without a slash at its end.
        on_error: told about an exception in a page, after it has been logged.
    """

    def __init__(
        self, routes: Mapping[str, Route], prefix: str = "", on_error: Callable[[], None] = lambda: None
    ) -> None:
        self._routes, self._prefix, self._on_error = dict(routes), prefix.rstrip("/"), on_error

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answers one request."""
        request = _request(environ)
        response = self.answer(request)
        body = response.body.encode() if isinstance(response.body, str) else response.body
        start_response(
            f"{response.status.value} {response.status.phrase}",
            [
                ("Content-Type", response.content_type),
                ("Content-Length", str(len(body))),
                ("X-Content-Type-Options", "nosniff"),
                *response.headers,
            ],
        )
        return [] if request.method == "HEAD" else [body]

    def answer(self, request: Request) -> Response:
        """The response to a request whose path still has its prefix."""
        path = self._without_prefix(request.path)
        route = self._routes.get(path) if path is not None else None
        if route is None or path is None:
            return error(HTTPStatus.NOT_FOUND)
        allow = ("Allow", ", ".join((*route.methods, "OPTIONS")))
        if request.method == "OPTIONS":
            return Response(headers=(allow,))
        if request.method not in route.methods:
            return error(HTTPStatus.METHOD_NOT_ALLOWED, f"use {' or '.join(route.methods)}", (allow,))
        try:
            return route.page(Request(request.method, path, request.query, request.headers))
        except Exception:  # noqa: BLE001  # whatever a page does, the server answers and lives
            _log.exception("a page could not be answered", extra={"fields": {"path": path}})
            self._on_error()
            return error(HTTPStatus.INTERNAL_SERVER_ERROR, "see the exporter's log")

    def _without_prefix(self, path: str) -> str | None:
        if path == self._prefix:  # with a prefix, the landing page answers with and without its slash
            return "/"
        return path.removeprefix(self._prefix) if path.startswith(f"{self._prefix}/") else None


def _request(environ: WSGIEnvironment) -> Request:
    headers = {
        name.removeprefix("HTTP_").replace("_", "-").lower(): str(value)
        for name, value in environ.items()
        if name.startswith("HTTP_")
    }
    query = parse_qs(str(environ.get("QUERY_STRING", "")), keep_blank_values=True)
    # PEP 3333 hands the path over as latin-1; no page's path has other characters.
    return Request(str(environ["REQUEST_METHOD"]), str(environ.get("PATH_INFO") or "/"), query, headers)
