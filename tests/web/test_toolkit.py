from __future__ import annotations

from pathlib import Path

import pytest

from prefix_cache_exporter.documents import DocumentError
from prefix_cache_exporter.web.toolkit import WebConfig, WebConfigFile, load_web_config
from support.certificates import make_authority, make_certificate

HERE = Path(__file__).parent
HASH = "$2y$10$X0h1gDsPszWURQaxFh.zoubFi6DXncSjhoQNJgRrnGs7EsimhC7zG"


@pytest.mark.parametrize("file", sorted((HERE / "bad").glob("*.yml")), ids=lambda file: file.stem)
def test_one_file_per_mistake(file):
    """The first line of each file is the message, without the file's name."""
    with pytest.raises(DocumentError) as caught:
        load_web_config(file)
    expected = file.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ").replace("{folder}", str(file.parent))
    assert str(caught.value) == f"{file}: {expected}"
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["", "tls_server_config:\nbasic_auth_users:\nhttp_server_config:\n", "http_server_config: {http2: false}"]
)
def test_nothing_asked_for_is_plain_and_open(tmp_path, text):
    (tmp_path / "web.yml").write_text(text)
    assert load_web_config(tmp_path / "web.yml") == WebConfig()


def test_users_and_headers(tmp_path):
    (tmp_path / "web.yml").write_text(
        f"basic_auth_users: {{scraper: '{HASH}'}}\nhttp_server_config: {{headers: {{X-Frame-Options: deny}}}}\n"
    )
    config = load_web_config(tmp_path / "web.yml")
    assert (config.users, config.headers) == ({"scraper": HASH}, (("X-Frame-Options", "deny"),))


def test_an_authority_that_is_none_is_named(tmp_path):
    make_authority(tmp_path, "ca")
    make_certificate(tmp_path, "server", "ca")
    file = tmp_path / "web.yml"
    file.write_text(
        "tls_server_config: {cert_file: server.pem, key_file: server.key, client_ca_file: web.yml,"
        " client_auth_type: RequireAndVerifyClientCert}"
    )
    with pytest.raises(DocumentError) as caught:
        load_web_config(file)
    assert str(caught.value) == f"{file}: tls_server_config.client_ca_file: got {file}, expected PEM certificates"


def test_a_change_is_read_and_a_broken_one_is_not(tmp_path, caplog):
    file = tmp_path / "web.yml"
    file.write_text("")
    web = WebConfigFile(file)
    assert web.current().users == {}

    file.write_text(f"basic_auth_users: {{scraper: '{HASH}'}}")
    assert web.current().users == {"scraper": HASH}

    file.write_text("basic_auth_users: {scraper: not-a-hash-at-all}")
    assert web.current().users == {"scraper": HASH}
    assert web.current().users == {"scraper": HASH}
    [record] = [record for record in caplog.records if record.levelname == "ERROR"]
    assert record.getMessage() == (
        "web configuration not taken, the old one stays in force: "
        f"{file}: basic_auth_users.scraper: got something else, expected a bcrypt hash"
    )

    file.unlink()
    assert web.current().users == {"scraper": HASH}


def test_a_renewed_certificate_is_read_through_a_symlink_swap(tmp_path):
    """The way Kubernetes updates a mounted secret."""
    make_authority(tmp_path, "ca")
    for turn in ("one", "two"):
        (tmp_path / turn).mkdir()
        make_certificate(tmp_path, turn, "ca")
        (tmp_path / f"{turn}.pem").rename(tmp_path / turn / "tls.crt")
        (tmp_path / f"{turn}.key").rename(tmp_path / turn / "tls.key")
    (tmp_path / "current").symlink_to("one")
    (tmp_path / "web.yml").write_text("tls_server_config: {cert_file: current/tls.crt, key_file: current/tls.key}")
    web = WebConfigFile(tmp_path / "web.yml")
    before = web.current().tls
    assert web.current().tls is before

    (tmp_path / "next").symlink_to("two")
    (tmp_path / "next").rename(tmp_path / "current")
    assert web.current().tls is not before
