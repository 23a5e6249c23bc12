from __future__ import annotations

import pytest

from prefix_cache_exporter.web import address
from prefix_cache_exporter.web.address import Address, AddressError, bind_host, parse_address


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        (":10910", "", 10910),
        ("127.0.0.1:0", "127.0.0.1", 0),
        ("localhost:80", "localhost", 80),
        ("[::1]:10910", "::1", 10910),
        ("[fe80::1%eth0]:10910", "fe80::1%eth0", 10910),
    ],
)
def test_forms(text, host, port):
    assert parse_address(text) == Address(host, port)
    assert str(Address(host, port)) == text


@pytest.mark.parametrize(
    "text", ["", "10910", "host", "::1:10910", "[::1]", ":x", ":-1", "http://x:1", "a b:1", ":123456", "[zz]:1"]
)
def test_other_forms_are_refused(text):
    with pytest.raises(AddressError) as caught:
        parse_address(text)
    assert str(caught.value) == f"got {text}, expected `:port`, `host:port` or `[ipv6]:port`"


def test_a_port_that_is_none_is_refused():
    with pytest.raises(AddressError, match="expected a port up to 65535"):
        parse_address(":65536")


def test_all_interfaces_with_and_without_ipv6(monkeypatch):
    assert bind_host(Address("10.0.0.1", 1)) == "10.0.0.1"
    monkeypatch.setattr(address, "_has_ipv6", lambda: True)
    assert bind_host(Address("", 1)) == "::"
    monkeypatch.setattr(address, "_has_ipv6", lambda: False)
    assert bind_host(Address("", 1)) == "0.0.0.0"


def test_a_machine_without_ipv6_is_noticed(monkeypatch):
    def refuse(*_):
        raise OSError(97, "address family not supported")

    monkeypatch.setattr(address.socket, "socket", refuse)
    assert not address._has_ipv6()
