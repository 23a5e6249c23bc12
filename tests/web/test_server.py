from __future__ import annotations

import http.client
import socket
import ssl
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import bcrypt
import pytest
import requests

from prefix_cache_exporter.web.address import Address
from prefix_cache_exporter.web.server import WebServer
from prefix_cache_exporter.web.site import site
from support.certificates import make_authority, make_certificate
from support.site import Inside

LOOPBACK = Address("127.0.0.1", 0)


@contextmanager
def serving(*addresses, config_file=None, app=None):
    server = WebServer(app or site(Inside()), addresses or (LOOPBACK,), config_file)
    server.start()
    try:
        yield server, [f"{server.scheme}://127.0.0.1:{address.port}" for address in server.addresses]
    finally:
        server.stop()


def hashed(password):
    return bcrypt.hashpw(password.encode(), bcrypt.gensalt(4)).decode()


def test_several_addresses_answer_alike():
    with serving(LOOPBACK, LOOPBACK) as (_, [one, two]):
        assert requests.get(f"{one}/metrics", timeout=5).text == requests.get(f"{two}/metrics", timeout=5).text


def test_an_address_in_use_is_an_error_and_the_others_are_let_go():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        server = WebServer(site(Inside()), [LOOPBACK, Address("127.0.0.1", taken.getsockname()[1])])
        with pytest.raises(OSError, match="address already in use"):
            server.start()
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", server.addresses[0].port), timeout=5)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_response_has_length_type_and_name(method):
    with serving() as (_, [url]):
        response = requests.request(method, f"{url}/metrics", headers={"Accept-Encoding": "gzip"}, timeout=5)
    assert response.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert response.headers["Content-Encoding"] == "gzip"
    assert response.headers["Server"] == "prefix-cache-exporter"
    assert "Transfer-Encoding" not in response.headers
    assert bool(response.content) is (method == "GET")


def test_many_scrapes_at_once_get_the_same_page():
    with serving() as (_, [url]), ThreadPoolExecutor(16) as pool:
        pages = list(pool.map(lambda _: requests.get(f"{url}/metrics", timeout=30).text, range(64)))
    assert set(pages) == {pages[0]}


def test_what_is_no_request_gets_no_stack_trace():
    lines = (
        "GET / HTTP/9.9",
        "nonsense",
        "GET\t/\tHTTP/1.1",
        "GET http://evil/ HTTP/1.1",
        "GET /%00 HTTP/1.1",
        "\x16\x03",
    )
    with serving() as (server, _):
        for line in lines:
            with socket.create_connection(("127.0.0.1", server.addresses[0].port), timeout=5) as client:
                client.sendall(f"{line}\r\nHost: a\r\nConnection: close\r\n\r\n".encode("latin-1"))
                answer = b""
                while data := client.recv(65536):
                    answer += data
            assert answer.startswith((b"HTTP/1.1 4", b"HTTP/1.1 5")), line
            assert b"Traceback" not in answer
            assert b"Content-Type: text/plain" in answer


SHORT_OF_FILES = """
import logging, resource, socket, time, urllib.request
from prefix_cache_exporter.web.address import Address
from prefix_cache_exporter.web.server import WebServer
logging.basicConfig(format="%(message)s")
web = WebServer(lambda environ, start: (start("200 OK", []), [b"page"])[1], [Address("127.0.0.1", 0)])
web.start()
clients = [socket.socket() for _ in range(40)]
resource.setrlimit(resource.RLIMIT_NOFILE, (clients[-1].fileno() + 10, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
for client in clients:
    client.connect(("127.0.0.1", web.addresses[0].port))
started = time.process_time()
time.sleep(1)
print(time.process_time() - started < 0.5)
for client in clients:
    client.close()
print(urllib.request.urlopen(f"http://127.0.0.1:{web.addresses[0].port}/", timeout=20).read())
web.stop()
"""


def test_without_a_file_for_another_connection_it_says_so_once_and_waits():
    done = subprocess.run([sys.executable, "-c", SHORT_OF_FILES], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "True\nb'page'\n"), done.stderr
    assert done.stderr == "no connection can be accepted\n"


def test_a_page_in_progress_is_finished_before_the_end():
    entered, leave = threading.Event(), threading.Event()

    def slow(environ, start_response):
        entered.set()
        leave.wait(5)
        start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "4")])
        return [b"done"]

    with ThreadPoolExecutor(1) as pool, serving(app=slow) as (server, [url]):
        answer = pool.submit(requests.get, url, timeout=5)
        assert entered.wait(5)
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        leave.set()
        assert answer.result().text == "done"
        stopping.join()


def test_basic_authentication(tmp_path):
    file = tmp_path / "web.yml"
    file.write_text(f"basic_auth_users: {{scraper: '{hashed('right')}', empty: '{hashed('')}'}}\n")
    with serving(config_file=file) as (_, [url]):

        def status(*auth, **headers):
            return requests.get(f"{url}/metrics", auth=auth or None, headers=headers, timeout=5).status_code

        assert status() == 401
        assert status("scraper", "right") == 200
        assert status("scraper", "right") == 200
        assert status("scraper", "wrong") == 401
        assert status("scraper", "wrong") == 401
        assert status("scraper", "") == 401
        assert status("nobody", "right") == 401
        assert status("empty", "") == 200
        assert status("scraper", "right" * 50) == 401
        assert status(Authorization="Bearer right") == 401
        assert status(Authorization="Basic !!!") == 401
        assert status(Authorization="Basic /w==") == 401
        refused = requests.get(f"{url}/-/healthy", timeout=5)
        assert (refused.text, refused.headers["WWW-Authenticate"]) == ("401 Unauthorized\n", "Basic")
        assert refused.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert requests.head(f"{url}/metrics", timeout=5).status_code == 401

        file.write_text(f"basic_auth_users: {{scraper: '{hashed('new')}'}}\n")
        assert status("scraper", "right") == 401
        assert status("scraper", "new") == 200


def test_what_is_remembered_of_passwords_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr("prefix_cache_exporter.web.auth._REMEMBERED", 2)
    file = tmp_path / "web.yml"
    file.write_text(f"basic_auth_users: {{scraper: '{hashed('right')}'}}\n")
    with serving(config_file=file) as (_, [url]):
        for wrong in ("a", "b", "c"):
            assert requests.get(url, auth=("scraper", wrong), timeout=5).status_code == 401
        assert requests.get(url, auth=("scraper", "right"), timeout=5).status_code == 200


def test_headers_of_the_web_configuration_win(tmp_path):
    file = tmp_path / "web.yml"
    file.write_text(
        "http_server_config: {headers: {Content-Security-Policy: frame-ancestors 'none', X-Frame-Options: deny}}"
    )
    with serving(config_file=file) as (_, [url]):
        headers = requests.get(url, timeout=5).headers
    assert (headers["Content-Security-Policy"], headers["X-Frame-Options"]) == ("frame-ancestors 'none'", "deny")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificates")
    make_authority(folder, "ca")
    make_authority(folder, "stranger")
    for name, authority in (("server", "ca"), ("renewed", "ca"), ("client", "ca"), ("intruder", "stranger")):
        make_certificate(folder, name, authority)
    return folder


def tls_config(certificates, folder, **more):
    file = folder / "web.yml"
    settings = {"cert_file": certificates / "server.pem", "key_file": certificates / "server.key", **more}
    file.write_text("tls_server_config:\n" + "".join(f"  {key}: {value}\n" for key, value in settings.items()))
    return file


def peer(url, certificates, context=None):
    """Shakes hands, asks for the health page and answers the status and the common name of the server's certificate."""
    context = context or ssl.create_default_context(cafile=certificates / "ca.pem")
    connection = http.client.HTTPSConnection(url.removeprefix("https://"), context=context, timeout=5)
    try:
        connection.request("GET", "/-/healthy")
        status = connection.getresponse().status
        return status, dict(pair[0] for pair in connection.sock.getpeercert()["subject"])["commonName"]
    finally:
        connection.close()


def test_tls(certificates, tmp_path):
    with serving(config_file=tls_config(certificates, tmp_path)) as (server, [url]):
        assert server.scheme == "https"
        page = requests.get(f"{url}/metrics", verify=certificates / "ca.pem", timeout=5)
        assert page.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert page.text.startswith("# HELP prefix_cache_engine_prompt_tokens_total")
        with pytest.raises(requests.exceptions.SSLError):
            requests.get(f"{url}/metrics", verify=certificates / "stranger.pem", timeout=5)
        with pytest.raises(requests.exceptions.ConnectionError):
            requests.get(url.replace("https", "http"), timeout=5)
        assert peer(url, certificates) == (200, "server")


def test_clients_that_say_nothing_keep_nobody_waiting(certificates, tmp_path):
    with serving(config_file=tls_config(certificates, tmp_path)) as (server, [url]), ExitStack() as silent:
        for _ in range(8):
            silent.enter_context(socket.create_connection(("127.0.0.1", server.addresses[0].port), timeout=5))
        assert peer(url, certificates) == (200, "server")


def test_a_renewed_certificate_is_served_without_a_restart(certificates, tmp_path):
    file = tls_config(certificates, tmp_path)
    with serving(config_file=file) as (_, [url]):
        assert peer(url, certificates) == (200, "server")
        more = {"cert_file": certificates / "renewed.pem", "key_file": certificates / "renewed.key"}
        tls_config(certificates, tmp_path, **more)
        assert peer(url, certificates) == (200, "renewed")


def test_tls_can_be_taken_away_and_given_back(certificates, tmp_path):
    file = tls_config(certificates, tmp_path)
    with serving(config_file=file) as (_, [url]):
        file.write_text("")
        assert requests.get(url.replace("https", "http"), timeout=5).status_code == 200
        tls_config(certificates, tmp_path)
        assert peer(url, certificates) == (200, "server")


def test_the_lowest_version_is_kept(certificates, tmp_path):
    old = ssl.create_default_context(cafile=certificates / "ca.pem")
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with serving(config_file=tls_config(certificates, tmp_path, min_version="TLS13")) as (_, [url]):
        assert peer(url, certificates) == (200, "server")
        with pytest.raises(ssl.SSLError):
            peer(url, certificates, old)
    with serving(config_file=tls_config(certificates, tmp_path, prefer_server_cipher_suites="false")) as (_, [url]):
        assert peer(url, certificates, old) == (200, "server")


@pytest.mark.parametrize(
    ("kind", "without", "with_stranger"),
    [("RequireAndVerifyClientCert", False, False), ("VerifyClientCertIfGiven", True, False)],
)
def test_clients_show_a_certificate(certificates, tmp_path, kind, without, with_stranger):
    file = tls_config(certificates, tmp_path, client_auth_type=kind, client_ca_file=certificates / "ca.pem")

    def admits(url, name=None):
        context = ssl.create_default_context(cafile=certificates / "ca.pem")
        if name:
            context.load_cert_chain(certificates / f"{name}.pem", certificates / f"{name}.key")
        try:
            return peer(url, certificates, context) == (200, "server")
        except (OSError, http.client.HTTPException):
            return False

    with serving(config_file=file) as (_, [url]):
        assert admits(url, "client")
        assert admits(url) is without
        assert admits(url, "intruder") is with_stranger
        assert admits(url, "client")
