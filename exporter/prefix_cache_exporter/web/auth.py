from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
import threading
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import bcrypt

from .http import PLAIN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from .toolkit import WebConfig

_NOBODY = "$2b$10$TJfLgB5AOpCUG3Ks3K3z/eQk5KYlCnW3m3iiuzBa4fIhRuqQrFrOC"
"""The hash of a random password, so that an unknown user takes as long to refuse as a known one."""
_REMEMBERED = 100


class Guard:
    """Asks for basic authentication and adds headers, as the web configuration in force says.

    A password is checked once and then remembered as a keyed digest, since bcrypt is slow by design and a scrape comes
    every few seconds. Only one check runs at a time: guessing cannot take more than one core.
    """

    def __init__(self, app: WSGIApplication, current: Callable[[], WebConfig]) -> None:
        self._app, self._current = app, current
        self._lock, self._key = threading.Lock(), secrets.token_bytes(32)
        self._known: dict[bytes, bool] = {}

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Passes the request on, or answers 401."""
        config = self._current()

        def with_headers(status: str, headers: list[tuple[str, str]], *rest: Any) -> Callable[[bytes], object]:
            own = {name.lower() for name, _ in config.headers}
            kept = [(name, value) for name, value in headers if name.lower() not in own]
            return start_response(status, [*kept, *config.headers], *rest)

        if not config.users or self._admits(str(environ.get("HTTP_AUTHORIZATION", "")), config.users):
            return self._app(environ, with_headers)
        refused = HTTPStatus.UNAUTHORIZED
        body = f"{refused.value} {refused.phrase}\n".encode()
        challenge = [("WWW-Authenticate", "Basic"), ("Content-Type", PLAIN), ("Content-Length", str(len(body)))]
        with_headers(f"{refused.value} {refused.phrase}", challenge)
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]

    def _admits(self, authorization: str, users: Mapping[str, str]) -> bool:
        user, password = _credentials(authorization)
        if user is None:
            return False
        hashed = users.get(user)
        parts = (user.encode(), (hashed or _NOBODY).encode(), password)
        digest = hashlib.blake2b(
            b"".join(len(part).to_bytes(4, "big") + part for part in parts), key=self._key
        ).digest()
        with self._lock:
            known = self._known.get(digest)
            if known is None:
                if len(self._known) >= _REMEMBERED:
                    self._known.clear()
                known = self._known[digest] = _matches(password, hashed or _NOBODY)
        return known and hashed is not None


def _credentials(authorization: str) -> tuple[str | None, bytes]:
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != "basic":
        return None, b""
    try:
        user, _, password = base64.b64decode(token.strip(), validate=True).partition(b":")
        return user.decode(), password
    except (binascii.Error, UnicodeDecodeError):
        return None, b""


def _matches(password: bytes, hashed: str) -> bool:
    try:
        return bcrypt.checkpw(password, hashed.encode())
    except ValueError:  # longer than bcrypt's 72 bytes, or with a NUL: no hash was ever made of it
        return False
