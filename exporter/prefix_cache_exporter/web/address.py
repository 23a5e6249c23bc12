from __future__ import annotations

import ipaddress
import re
import socket
from dataclasses import dataclass

_FORM = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.%a-z]+)\]|(?P<host>[^\s:\[\]/]*)):(?P<port>[0-9]{1,5})")
_EXPECTED = "`:port`, `host:port` or `[ipv6]:port`"
_HIGHEST = 65535


class AddressError(ValueError):
    """An address that cannot be listened on.

    Attributes:
        got: what stood there.
        expected: the forms that are understood.
    """

    def __init__(self, got: str, expected: str = _EXPECTED) -> None:
        self.got, self.expected = got, expected
        super().__init__(f"got {got}, expected {expected}")


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen: an empty host means all interfaces, IPv6 and IPv4."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """Reads an address as `--web.listen-address` takes it.

    Raises:
        AddressError: where it has another form or the port is no port.
    """
    match = _FORM.fullmatch(text)
    if match is None or (match["six"] is not None and not _is_ipv6(match["six"])):
        raise AddressError(text)
    port = int(match["port"])
    if port > _HIGHEST:
        raise AddressError(text, f"a port up to {_HIGHEST}")
    return Address(match["six"] or match["host"] or "", port)


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def bind_host(address: Address) -> str:
    """The host to bind: for all interfaces the IPv6 wildcard, which takes IPv4 too, where the machine has IPv6."""
    if address.host:
        return address.host
    return "::" if _has_ipv6() else "0.0.0.0"  # noqa: S104  # Prometheus scrapes the pod's address


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind(("::", 0))
    except OSError:
        return False
    return socket.has_ipv6
