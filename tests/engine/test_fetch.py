from __future__ import annotations

import gzip
import itertools
import logging
import socket
import ssl
import threading
import traceback
import zlib
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
import requests

from prefix_cache_exporter.config.model import ClientTls, EngineSource
from prefix_cache_exporter.engine.deadline import Deadline
from prefix_cache_exporter.engine.fetch import Fetched, Fetcher, FetchError, _explain
from support.certificates import make_authority, make_certificate
from support.loopback import Loopback, http, say

if TYPE_CHECKING:
    from pathlib import Path

PAGE = b"# TYPE a gauge\na 1\n"
TEXT = "text/plain; version=0.0.4; charset=utf-8"


def source(url: str, **settings) -> EngineSource:
    return EngineSource(name="vllm", url=url, **settings)


def fetch(url: str, path: str = "/metrics", **settings) -> Fetched:
    return Fetcher(source(url, **settings)).fetch(path)


def failure(url: str, **settings) -> str:
    with pytest.raises(FetchError) as caught:
        fetch(url, **settings)
    error = caught.value
    assert str(error) == f"{error.reason}: {error.detail}"
    assert "127.0.0.1" not in "".join(traceback.format_exception(error))
    return error.reason


def test_a_page_comes_with_its_content_type():
    with Loopback(http(body=PAGE, Content_Type=TEXT)) as server:
        assert fetch(server.url) == Fetched(PAGE, TEXT)
        [request] = server.requests
    assert request.startswith(b"GET /metrics HTTP/1.1\r\n")
    assert b"Accept: text/plain;version=0.0.4" in request
    assert b"Connection: close" in request
    assert b"Authorization" not in request


@pytest.mark.parametrize(
    ("url", "page", "version"),
    [
        ("", "/metrics", "/version"),
        ("/", "/metrics", "/version"),
        ("/pool/a/", "/pool/a/metrics", "/pool/a/version"),
        ("/pool/a/metrics?format=text", "/pool/a/metrics?format=text", "/pool/a/version"),
        ("/prometheus", "/prometheus", "/version"),
    ],
)
def test_the_url_names_the_server_or_its_page(url, page, version):
    with Loopback(http(body=b'{"version":"0.32.0"}')) as server:
        fetcher = Fetcher(source(server.url + url))
        fetcher.fetch("/metrics")
        assert fetcher.version() == "0.32.0"
        fetcher.close()
        asked = [request.split()[1].decode() for request in server.requests]
    assert asked == [page, version]


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://host/metrics", "http://", "http://host:port/"])
def test_a_url_that_is_none_is_refused_at_once(url):
    with pytest.raises(ValueError, match=r"[Pp]ort|url"):
        Fetcher(source(url))


def test_bodies_may_come_in_chunks_compressed_or_until_the_end():
    zipped = gzip.compress(PAGE[:8]) + gzip.compress(PAGE[8:])
    chunks = b"5\r\n" + PAGE[:5] + b"\r\n" + f"{len(PAGE) - 5:x}".encode() + b"\r\n" + PAGE[5:] + b"\r\n0\r\n\r\n"
    with Loopback(
        say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", chunks),
        http(body=zipped, Content_Encoding="gzip"),
        say(b"HTTP/1.0 200 OK\r\n\r\n", PAGE),
    ) as server:
        assert [fetch(server.url).body for _ in range(3)] == [PAGE] * 3


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (http("500 Internal Server Error", b"a 1\n"), "http_status"),
        (http("404 Not Found", b"a 1\n"), "http_status"),
        (http("204 No Content"), "http_status"),
        (http(body=b""), "empty"),
        (say(b"HTTP/1.1 200 OK\r\n\r\n"), "empty"),
        (http(body=PAGE, Content_Length="100"), "truncated"),
        (say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\na 1\n"), "truncated"),
        (http(body=gzip.compress(PAGE)[:-3], Content_Encoding="gzip"), "truncated"),
        (http(body=PAGE, Content_Encoding="gzip"), "encoding"),
        (http(body=zlib.compress(PAGE), Content_Encoding="deflate"), "encoding"),
        (say(b""), "refused"),
        (say(b"SSH-2.0-OpenSSH_9.2\r\n"), "refused"),
        (http("302 Found", Location="http://elsewhere.test/metrics"), "redirect"),
        (http("302 Found", Location="http://127.0.0.1:nowhere/metrics"), "redirect"),
        (http("302 Found", Location="ftp://127.0.0.1/metrics"), "redirect"),
        (http("302 Found"), "redirect"),
        (http("307 Temporary Redirect", Location="/again"), "redirect"),
    ],
)
def test_every_failure_has_a_reason(answer, reason):
    with Loopback(answer) as server:
        assert failure(server.url) == reason


def test_a_server_that_is_not_up_yet():
    with Loopback(http()) as server:
        url = server.url
    assert failure(url) == "refused"


@pytest.mark.parametrize("location", ["/new?x=1", "new?x=1", "{url}/new?x=1"])
def test_one_redirect_to_the_same_host_is_followed_with_the_token(location, tmp_path):
    (tmp_path / "token").write_text("s3cret\n")
    with Loopback(http(body=PAGE)) as server:
        server._answers.insert(0, http("307 Temporary Redirect", Location=location.format(url=server.url)))
        assert fetch(server.url, bearer_token_file=tmp_path / "token").body == PAGE
        assert server.requests[1].startswith(b"GET /new?x=1 HTTP/1.1\r\n")
        assert [b"Authorization: Bearer s3cret\r\n" in request for request in server.requests] == [True, True]


def test_the_token_never_goes_to_another_port(tmp_path):
    (tmp_path / "token").write_text("s3cret")
    with Loopback(http(body=PAGE)) as other, Loopback(http("302 Found", Location=other.url)) as server:
        assert failure(server.url, bearer_token_file=tmp_path / "token") == "redirect"
        assert other.requests == []


def test_the_token_is_read_anew_and_its_absence_is_a_reason(tmp_path):
    file = tmp_path / "token"
    with Loopback(http(body=PAGE)) as server:
        fetcher = Fetcher(source(server.url, bearer_token_file=file))
        for content in ("one\n", "two"):
            file.write_text(content)
            fetcher.fetch()
        for content in ("", "two words", "umläut"):
            file.write_text(content)
            with pytest.raises(FetchError, match=r"^credentials: .*/token ") as caught:
                fetcher.fetch()
            assert "words" not in str(caught.value)
        file.unlink()
        with pytest.raises(FetchError, match=r"^credentials: .*/token cannot be read$"):
            fetcher.fetch()
        heads = [request.decode().lower() for request in server.requests]
    assert ["authorization: bearer one\r\n" in head for head in heads] == [True, False]
    assert "authorization: bearer two\r\n" in heads[1]


def test_a_login_in_the_url_is_sent_and_never_said(caplog):
    caplog.set_level(logging.DEBUG)
    with Loopback(http(body=PAGE), http("500 Oops"), say(b"")) as server:
        url = server.url.replace("//", "//ops:p%40ss@")
        assert fetch(url).body == PAGE
        assert b"Authorization: Basic b3BzOnBAc3M=\r\n" in server.requests[0]  # ops:p@ss
        assert [failure(url), failure(url)] == ["http_status", "refused"]
    assert "ss@" not in caplog.text


def test_proxies_and_logins_of_the_environment_are_not_used(monkeypatch, tmp_path):
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login a password b\n")
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with Loopback(http(body=PAGE)) as server:
        assert fetch(server.url).body == PAGE
        assert b"Authorization" not in server.requests[0]


BOMB = gzip.compress(bytes(50_000_000))


@pytest.mark.parametrize(
    "answer",
    [
        http(Content_Length="1001"),  # refused before a byte of it is read
        say(b"HTTP/1.1 200 OK\r\n\r\n", bytes(1001)),
        http(body=gzip.compress(bytes(1001)), Content_Encoding="gzip"),
        http(body=BOMB[:900], Content_Length="900", Content_Encoding="gzip"),
    ],
)
def test_bodies_beyond_the_limit_are_refused(answer):
    with Loopback(answer) as server:
        assert failure(server.url, body_limit_bytes=1000) == "too_large"


def test_a_body_at_the_limit_passes():
    with Loopback(http(body=PAGE), http(body=gzip.compress(PAGE), Content_Encoding="gzip")) as server:
        limit = max(len(PAGE), len(gzip.compress(PAGE)))
        assert fetch(server.url, body_limit_bytes=limit).body == PAGE
        assert fetch(server.url, body_limit_bytes=limit).body == PAGE


def drip(*head: bytes, until: threading.Event):
    """Sends a byte every few milliseconds, until the client hangs up."""

    def answer(connection, _):
        connection.sendall(b"".join(head))
        for _ in itertools.count():
            if until.wait(0.005):
                return
            connection.sendall(b"a")

    return answer


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nX-Slow: ",
        b"HTTP/1.1 200 OK\r\n\r\n",  # its end would look like the body's
        b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n",
    ],
)
def test_a_server_that_drips_is_ended_by_the_deadline(head):
    end = threading.Event()
    with Loopback(drip(head, until=end)) as server:
        assert failure(server.url, timeout_seconds=0.05) == "timeout"
        end.set()


def test_a_server_that_says_nothing_is_ended_by_the_deadline():
    end = threading.Event()
    with Loopback(lambda *_: end.wait()) as server:
        assert failure(server.url, timeout_seconds=0.05) == "timeout"
        end.set()


def test_a_connection_made_too_late_is_ended_at_once():
    ours, theirs = socket.socketpair()
    deadline = Deadline(60)
    deadline.expired = True
    deadline.connected(SimpleNamespace(sock=ours))
    with ours, theirs:
        assert theirs.recv(1) == b""


@pytest.fixture(scope="module")
def certificates(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    make_authority(folder, "authority")
    make_certificate(folder, "server", "authority", names="IP:127.0.0.1,DNS:engine.test")
    make_certificate(folder, "client", "authority")
    both = (folder / "client.pem").read_bytes() + (folder / "client.key").read_bytes()
    (folder / "client-with-key.pem").write_bytes(both)
    return folder


@pytest.fixture
def client_tls(certificates):
    def make(*, server_name: str | None = None, **files: str) -> ClientTls:
        return ClientTls(server_name=server_name, **{key: certificates / name for key, name in files.items()})

    return make


@pytest.fixture
def server_tls(certificates) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "server.pem", certificates / "server.key")
    context.load_verify_locations(certificates / "authority.pem")
    return context


@pytest.mark.parametrize("name", [None, "engine.test"])
def test_tls(name, client_tls, server_tls):
    with Loopback(http(body=PAGE), tls=server_tls) as server:
        assert fetch(server.url, tls=client_tls(ca_file="authority.pem", server_name=name)).body == PAGE


def test_tls_without_a_look_at_the_certificate(server_tls):
    with Loopback(http(body=PAGE), tls=server_tls) as server:
        assert fetch(server.url, tls=ClientTls(insecure_skip_verify=True)).body == PAGE


@pytest.mark.parametrize(
    ("options", "detail"),
    [
        ({}, "certificate not accepted: "),
        ({"ca_file": "authority.pem", "server_name": "other.test"}, "certificate not accepted: Hostname mismatch"),
        ({"ca_file": "absent.pem"}, "a certificate or key file cannot be read"),
        ({"ca_file": "authority.pem", "cert_file": "absent.pem"}, "a certificate or key file cannot be read"),
        ({"ca_file": "authority.pem", "cert_file": "client.pem", "key_file": "server.key"}, "key values mismatch"),
    ],
)
def test_tls_that_does_not_hold(options, detail, client_tls, server_tls):
    with Loopback(http(body=PAGE), tls=server_tls) as server:
        with pytest.raises(FetchError) as caught:
            fetch(server.url, tls=client_tls(**options))
        assert caught.value.reason == "tls"
        assert caught.value.detail.startswith(detail)


@pytest.mark.parametrize(
    "files", [{"cert_file": "client.pem", "key_file": "client.key"}, {"cert_file": "client-with-key.pem"}]
)
def test_a_client_certificate_is_shown(files, client_tls, server_tls):
    server_tls.verify_mode = ssl.CERT_REQUIRED
    with Loopback(http(body=PAGE), tls=server_tls) as server:
        assert fetch(server.url, tls=client_tls(ca_file="authority.pem", **files)).body == PAGE
        assert failure(server.url, tls=client_tls(ca_file="authority.pem")) in ("tls", "refused", "truncated")


def test_a_redirect_may_lead_to_tls_but_not_back(client_tls, server_tls):
    tls = client_tls(ca_file="authority.pem")
    with (
        Loopback(http(body=PAGE), tls=server_tls) as secure,
        Loopback(http("308 Permanent Redirect", Location=secure.url)) as plain,
    ):
        assert fetch(plain.url, tls=tls).body == PAGE
        secure._answers[0] = http("308 Permanent Redirect", Location=plain.url)
        assert failure(secure.url, tls=tls) == "redirect"


def test_tls_spoken_to_a_server_that_does_not():
    def answer_at_once(connection, _):
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with Loopback(answer_at_once) as server:
        server.until = b"\x03"  # the version in a client's first TLS record
        assert failure(server.url.replace("http:", "https:")) == "tls"


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b"[]",
        b'"0.32.0"',
        b"0.32.0",
        b'{"version": null}',
        b'{"version": ""}',
        b'{"version": "a\\nb"}',
        b"[" * 9999,
    ],
)
def test_a_version_that_is_none(body):
    with Loopback(http(body=body)) as server, pytest.raises(FetchError, match=r"^malformed: /version says no version$"):
        Fetcher(source(server.url)).version()


def test_a_version_page_that_is_not_there():
    with Loopback(http("404 Not Found")) as server, pytest.raises(FetchError, match=r"^http_status: status 404$"):
        Fetcher(source(server.url)).version()


def test_a_connection_that_does_not_come_about_in_time():
    # The deadline and the connection's own timer run out together; either may be first.
    assert _explain(requests.ConnectTimeout()).reason == "timeout"
