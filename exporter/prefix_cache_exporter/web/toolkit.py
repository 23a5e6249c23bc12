"""`--web.config.file`: TLS, basic authentication and headers in the format that all of Prometheus's exporters share.

Format: https://github.com/prometheus/exporter-toolkit/blob/master/docs/web-configuration.md
"""

from __future__ import annotations

import logging
import re
import ssl
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from prefix_cache_exporter.documents import DocumentError, load_yaml, read_schema, validate

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_log = logging.getLogger(__name__)

_BCRYPT = re.compile(r"\$2[abxy]\$(0[4-9]|[12][0-9]|3[01])\$[./A-Za-z0-9]{53}")
_VERSIONS = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}
_CLIENTS = {
    "NoClientCert": ssl.CERT_NONE,
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
}


@dataclass(frozen=True, slots=True)
class WebConfig:
    """What a web configuration file asks for.

    Attributes:
        tls: the context of the server side; None for plain HTTP.
        users: bcrypt hashes by user; empty lets everybody in.
        headers: added to every response.
    """

    tls: ssl.SSLContext | None = None
    users: Mapping[str, str] = field(default_factory=dict)
    headers: tuple[tuple[str, str], ...] = ()


def load_web_config(path: Path) -> WebConfig:
    """Reads a web configuration file and what it names. Relative paths start at its folder.

    Raises:
        DocumentError: for the first mistake; it never shows a hash or key.
    """
    return _read(path)[0]


class WebConfigFile:
    """A web configuration that is read again as soon as it, or a file it names, changes.

    A change that cannot be used is logged once and leaves the last good one in force: a half-written certificate must
    neither open nor close the door.

    Raises:
        DocumentError: at construction, where the first reading already fails.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, threading.Lock()
        self._config, self._files = _read(path)
        self._seen = _look(self._files)

    def current(self) -> WebConfig:
        """What is in force now."""
        with self._lock:
            seen = _look(self._files)
            if seen != self._seen:
                self._seen = seen
                try:
                    self._config, self._files = _read(self._path)
                except DocumentError as error:
                    _log.error("web configuration not taken, the old one stays in force: %s", error)
                else:
                    self._seen = _look(self._files)
                    _log.info("web configuration read again")
            return self._config


def _look(files: tuple[Path, ...]) -> tuple[tuple[int, ...] | None, ...]:
    return tuple(map(_stamp, files))


def _stamp(file: Path) -> tuple[int, ...] | None:
    try:
        seen = file.stat()
    except OSError:
        return None
    return seen.st_mtime_ns, seen.st_size, seen.st_ino, seen.st_dev


def _read(path: Path) -> tuple[WebConfig, tuple[Path, ...]]:
    data: Any = load_yaml(path) or {}
    validate(_without_secrets(data), read_schema("web-config"), str(path))
    users: dict[str, str] = data.get("basic_auth_users") or {}
    for user, hashed in users.items():
        if not _BCRYPT.fullmatch(hashed):
            raise DocumentError(str(path), f"basic_auth_users.{user}", "something else", "a bcrypt hash")
    tls = {key: value for key, value in (data.get("tls_server_config") or {}).items() if value is not None}
    named = [path.parent / tls[key] for key in ("cert_file", "key_file", "client_ca_file") if key in tls]
    context = _context(tls, path) if tls else None
    headers = ((data.get("http_server_config") or {}).get("headers") or {}).items()
    return WebConfig(context, users, tuple(headers)), (path, *named)


def _without_secrets(data: Any) -> Any:
    """The document as the schema may see and an error may show it."""
    if not isinstance(data, dict):
        return data
    hidden = dict(data)
    for section, secret in (("basic_auth_users", None), ("tls_server_config", "key")):
        values = data.get(section)
        if isinstance(values, dict):
            hidden[section] = {
                name: "<secret>" if isinstance(value, str) and secret in {None, name} else value
                for name, value in values.items()
            }
    return hidden


def _context(tls: Mapping[str, Any], path: Path) -> ssl.SSLContext:
    place = "tls_server_config"
    for key in ("cert_file", "key_file"):
        if key not in tls:
            raise DocumentError(str(path), place, f"no {key}", f"the key {key}")
    clients = _CLIENTS[tls.get("client_auth_type", "NoClientCert")]
    if (clients == ssl.CERT_NONE) == ("client_ca_file" in tls):
        got = "client_ca_file without client_auth_type" if clients == ssl.CERT_NONE else "no client_ca_file"
        raise DocumentError(str(path), place, got, "client_auth_type and client_ca_file together")
    low, high = _VERSIONS[tls.get("min_version", "TLS12")], _VERSIONS[tls.get("max_version", "TLS13")]
    if low > high:
        raise DocumentError(str(path), place, "min_version above max_version", "a range of versions")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version, context.maximum_version = low, high
    if tls.get("prefer_server_cipher_suites", True):
        context.options |= ssl.OP_CIPHER_SERVER_PREFERENCE
    certificate, key = path.parent / tls["cert_file"], path.parent / tls["key_file"]
    for file, name in ((certificate, "cert_file"), (key, "key_file")):
        _readable(file, path, f"{place}.{name}")
    try:
        # An encrypted key must fail here, not ask for its password on a terminal that nobody watches.
        context.load_cert_chain(certificate, key, password=lambda: "")
    except (ssl.SSLError, ValueError) as error:
        raise DocumentError(
            str(path), place, f"{certificate} and {key} that do not fit", "a PEM certificate and its unencrypted key"
        ) from error
    if clients != ssl.CERT_NONE:
        authorities = path.parent / tls["client_ca_file"]
        _readable(authorities, path, f"{place}.client_ca_file")
        try:
            context.load_verify_locations(authorities)
        except ssl.SSLError as error:
            where = f"{place}.client_ca_file"
            raise DocumentError(str(path), where, str(authorities), "PEM certificates") from error
        context.verify_mode = clients
    return context


def _readable(file: Path, path: Path, place: str) -> None:
    try:
        file.open("rb").close()
    except OSError as error:
        raise DocumentError(
            str(path), place, f"{file} ({(error.strerror or 'an error').lower()})", "a readable file"
        ) from error
