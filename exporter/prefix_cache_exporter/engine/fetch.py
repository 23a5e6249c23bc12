"""A server's `/metrics` and `/version`, whole and within bounds, or a reason why not.

Nothing here ends the process, follows a redirect to another host, believes proxies of the environment, or says a
credential or an address in an error.
"""

from __future__ import annotations

import json
import ssl
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

import requests
import urllib3

from prefix_cache_exporter import __version__

from .deadline import Deadline, DeadlineAdapter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prefix_cache_exporter.config.model import EngineSource

_OK = 200
_PORTS = {"http": 80, "https": 443}
_TIMEOUTS = (TimeoutError, requests.Timeout, urllib3.exceptions.TimeoutError)
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PIECE = 64 * 1024
_VERSION_LIMIT = 64 * 1024
_LONGEST_VERSION = 200
# Text alone: asked for OpenMetrics at any weight, prometheus-client answers with it, which costs the engine more.
# Uncompressed, because compressing would stall the engine's event loop; a server that compresses anyway is understood.
_HEADERS = {
    "Accept": "text/plain;version=0.0.4,*/*;q=0.1",
    "Accept-Encoding": "identity",
    # Servers close idle connections after about a poll's time, which would race with the next request.
    "Connection": "close",
    "User-Agent": f"prefix-cache-exporter/{__version__}",
}


class FetchError(Exception):
    """No body, or none that can be used.

    Attributes:
        reason: `refused`, `timeout`, `http_status`, `redirect`, `empty`, `truncated`, `too_large`, `tls`, `encoding`,
            `credentials` (the token file) or `malformed` (`/version` only).
        detail: what happened; holds neither address nor credentials.
    """

    def __init__(self, reason: str, detail: str) -> None:
        self.reason, self.detail = reason, detail
        super().__init__(f"{reason}: {detail}")


@dataclass(frozen=True, slots=True)
class Fetched:
    """A whole body, decompressed."""

    body: bytes
    content_type: str | None


class Fetcher:
    """Fetches from one server; for one thread.

    Args:
        source: where, and within which bounds. A URL with a path names the metrics page, one without the server; a user
            and password in it are sent as basic authentication.

    Raises:
        ValueError: where the URL is not one of http or https with a host.
    """

    def __init__(self, source: EngineSource) -> None:
        url = urlsplit(source.url)
        if url.scheme not in _PORTS or not url.hostname:
            raise ValueError("got a url without http:// or https:// and a host, expected both")
        self._source = source
        _ = url.port  # raises where it is no number
        host = url.netloc.rpartition("@")[2]
        self._login = (unquote(url.username or ""), unquote(url.password or "")) if "@" in url.netloc else None
        url = url._replace(netloc=host)
        self._page = url if url.path.strip("/") and not url.path.endswith("/") else _beneath(url, "metrics")
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.headers = requests.structures.CaseInsensitiveDict(_HEADERS)
        adapter = DeadlineAdapter(source.tls.server_name)
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, adapter)
        self._session.verify = str(source.tls.ca_file) if source.tls.ca_file else True
        if source.tls.insecure_skip_verify:
            self._session.verify = False
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)  # asked for in so many words
        if source.tls.cert_file:
            key = source.tls.key_file
            self._session.cert = (str(source.tls.cert_file), str(key)) if key else str(source.tls.cert_file)

    def close(self) -> None:
        """Lets go of connections."""
        self._session.close()

    def fetch(self, path: str = "/metrics") -> Fetched:
        """Fetches one page within the source's time and size.

        Args:
            path: `/metrics` for the metrics page, wherever the URL puts it; anything else stands beside it.

        Raises:
            FetchError: with the reason.
        """
        return self._fetch(path, self._source.body_limit_bytes)

    def version(self) -> str:
        """The server's version, as `/version` says.

        Raises:
            FetchError: where there is no such answer.
        """
        fetched = self._fetch("/version", min(_VERSION_LIMIT, self._source.body_limit_bytes))
        try:
            version = json.loads(fetched.body)["version"]
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise FetchError("malformed", "/version says no version") from error
        if not isinstance(version, str) or not 0 < len(version) <= _LONGEST_VERSION or not version.isprintable():
            raise FetchError("malformed", "/version says no version")
        return version

    def _fetch(self, path: str, limit: int) -> Fetched:
        url = self._page if path == "/metrics" else _beneath(self._page._replace(query=""), path.lstrip("/"))
        headers = self._credentials()
        failure: FetchError | None = None
        with Deadline(self._source.timeout_seconds) as deadline:
            try:
                fetched = self._follow(url.geturl(), headers, limit)
            except FetchError as error:
                failure = error
            except (OSError, urllib3.exceptions.HTTPError, ValueError) as error:
                failure = _explain(error)
        # A connection that the deadline ended may look like anything, also like a body that came to its end.
        if deadline.expired or (failure and failure.reason == "timeout"):
            raise FetchError("timeout", f"not done within {self._source.timeout_seconds:g} s")
        if failure:
            raise failure  # outside of `except`: the cause's message carries the address
        return fetched

    def _credentials(self) -> dict[str, str]:
        file = self._source.bearer_token_file
        if file is None:
            return {}
        try:
            token = file.read_text("ascii").strip()
        except (OSError, UnicodeDecodeError):
            raise FetchError("credentials", f"{file} cannot be read") from None
        if not token or not token.isprintable() or " " in token:
            raise FetchError("credentials", f"{file} does not hold a token")
        return {"Authorization": f"Bearer {token}"}

    def _follow(self, url: str, headers: dict[str, str], limit: int) -> Fetched:
        with self._get(url, headers) as response:
            if response.status_code not in _REDIRECTS:
                return _body(response, limit)
            target = urljoin(url, response.headers.get("Location", ""))
        if target == url or not _same_host(urlsplit(url), urlsplit(target)):
            raise FetchError("redirect", f"status {response.status_code} to another host or nowhere")
        with self._get(target, headers) as response:
            if response.status_code in _REDIRECTS:
                raise FetchError("redirect", "more than one")
            return _body(response, limit)

    def _get(self, url: str, headers: dict[str, str]) -> requests.Response:
        return self._session.get(
            url,
            headers=headers,
            auth=self._login if not headers else None,
            timeout=self._source.timeout_seconds,
            stream=True,
            allow_redirects=False,
        )


def _explain(error: Exception) -> FetchError:
    causes = list(_causes(error))
    if any(isinstance(each, urllib3.exceptions.NewConnectionError) for each in causes):
        return FetchError("refused", "no connection")
    if any(isinstance(each, _TIMEOUTS) for each in causes):
        return FetchError("timeout", "an operation took too long")
    if any(isinstance(each, ssl.SSLError | urllib3.exceptions.SSLError) for each in causes):
        return FetchError("tls", next(_reasons(causes), "no secure connection"))
    if isinstance(error, OSError) and not isinstance(error, requests.RequestException):
        return FetchError("tls", "a certificate or key file cannot be read")  # how requests says that
    if isinstance(error, urllib3.exceptions.ProtocolError):
        return FetchError("truncated", "the connection ended within the body")
    return FetchError("refused", "no answer in HTTP")


def _beneath(url: SplitResult, name: str) -> SplitResult:
    return url._replace(path=url.path.rpartition("/")[0] + "/" + name, fragment="")


def _same_host(one: SplitResult, other: SplitResult) -> bool:
    """Whether a redirect stays: same host and port; the change to TLS may change the port."""
    if other.scheme not in _PORTS or one.hostname != other.hostname:
        return False
    try:
        port = other.port or _PORTS[other.scheme]
    except ValueError:  # no number
        return False
    return (one.scheme, other.scheme) == ("http", "https") or (one.scheme, one.port or _PORTS[one.scheme]) == (
        other.scheme,
        port,
    )


def _body(response: requests.Response, limit: int) -> Fetched:
    if response.status_code != _OK:
        raise FetchError("http_status", f"status {response.status_code}")
    length = response.headers.get("Content-Length", "")
    if length.isdecimal() and int(length) > limit:
        raise FetchError("too_large", f"{length} bytes announced, {limit} allowed")
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("", "identity", "gzip", "x-gzip"):
        raise FetchError("encoding", f"content encoding {encoding[:40]!r}")
    raw = _pieces(response.raw)
    body = bytearray()
    for piece in _unzipped(raw) if "gzip" in encoding else raw:
        body += piece
        if len(body) > limit:
            raise FetchError("too_large", f"more than {limit} bytes")
    if not body:
        raise FetchError("empty", "status 200 without a body")
    return Fetched(bytes(body), response.headers.get("Content-Type"))


def _pieces(raw: Any) -> Iterator[bytes]:
    # Raw, because a small compressed piece may unfold to any size before iter_content hands it over.
    while piece := raw.read(_PIECE, decode_content=False):
        yield piece


def _unzipped(pieces: Iterator[bytes]) -> Iterator[bytes]:
    unzip = zlib.decompressobj(zlib.MAX_WBITS | 16)
    for piece in pieces:
        rest = piece
        while rest:
            if unzip.eof:  # another member
                unzip = zlib.decompressobj(zlib.MAX_WBITS | 16)
            try:
                yield unzip.decompress(rest, _PIECE)
            except zlib.error:
                raise FetchError("encoding", "the body is not gzip") from None
            rest = unzip.unconsumed_tail or unzip.unused_data
    if not unzip.eof:
        raise FetchError("truncated", "the gzip body has no end")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        nested = [each for each in error.args if isinstance(each, BaseException)]
        reason = getattr(error, "reason", None)
        error = reason if isinstance(reason, BaseException) else nested[-1] if nested else error.__context__


def _reasons(causes: list[BaseException]) -> Iterator[str]:
    """What OpenSSL said; urllib3's own words would repeat the address."""
    for each in causes:
        if isinstance(each, ssl.SSLCertVerificationError):
            yield f"certificate not accepted: {each.verify_message}"
        elif isinstance(each, ssl.SSLError) and each.reason:
            yield each.reason.replace("_", " ").lower()
