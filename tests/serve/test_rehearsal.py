# ruff: noqa: E501  # each message of the table stands on one line
"""`check config`: every file that a configuration names is looked at, whether or not a source makes use of it."""

from __future__ import annotations

import pytest

from prefix_cache_exporter.config.load import load_config
from prefix_cache_exporter.documents import DocumentError
from prefix_cache_exporter.serve.rehearsal import Note, rehearse
from support.certificates import make_authority, make_certificate

ENGINE = "{name: a, url: 'https://127.0.0.1:9', "


@pytest.fixture
def check(tmp_path, monkeypatch):
    """What rehearsing says of a configuration beside some files: its mistakes, or its notes."""
    monkeypatch.chdir(tmp_path)

    def said(text, **files):
        for name, content in {"config": text, **files}.items():
            (tmp_path / f"{name}.yaml").write_text(content)
        try:
            return rehearse(load_config("config.yaml"))
        except DocumentError as error:
            return str(error).splitlines()

    return said


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"engines: [{ENGINE}bearer_token_file: gone}}]", "config.yaml: engines[0].bearer_token_file: got gone (no such file or directory), expected a readable file"),
        (f"engines: [{ENGINE}bearer_token_file: .}}]", "config.yaml: engines[0].bearer_token_file: got . (is a directory), expected a readable file"),
        (f"engines: [{ENGINE}tls: {{ca_file: gone}}}}]", "config.yaml: engines[0].tls.ca_file: got gone (no such file or directory), expected a readable file"),
        (f"engines: [{ENGINE}tls: {{ca_file: config.yaml}}}}]", "config.yaml: engines[0].tls.ca_file: got config.yaml, expected PEM certificates"),
        (f"engines: [{ENGINE}tls: {{cert_file: gone}}}}]", "config.yaml: engines[0].tls.cert_file: got gone (no such file or directory), expected a readable file"),
        (f"engines: [{ENGINE}tls: {{cert_file: config.yaml, key_file: gone}}}}]", "config.yaml: engines[0].tls.key_file: got gone (no such file or directory), expected a readable file"),
        (f"engines: [{ENGINE}tls: {{cert_file: config.yaml}}}}]", "config.yaml: engines[0].tls: got config.yaml and no key_file that do not fit, expected a PEM certificate and its unencrypted key"),
        ("prices: {files: [gone]}", "gone: file: got no such file or directory, expected a readable file"),
        ("prices: {files: [config.yaml]}", "config.yaml: document: got no provider, expected the key provider"),
        ("inventory: {file: gone}", "gone: file: got no such file or directory, expected a readable file"),
        ("maps: {folders: [gone]}", "config.yaml: maps.folders[0]: got gone, expected a folder that is there"),
        ("web: {config_file: gone}", "gone: file: got no such file or directory, expected a readable file"),
        ("usage: [{name: a, format: openai.chat, paths: [x], namespaces: {buckets: 2, key_file: gone}}]", "gone: file: got no such file or directory, expected a readable file"),
        ("release: {file: config.yaml}", "config.yaml: document: got the unknown key release, expected one of "),
        ("release: {file: .}", ".: file: got is a directory, expected a readable file"),
        ("usage: [{name: a, format: openai.chat, paths: [x], release: {file: config.yaml/x}}]", "config.yaml/x: file: got not a directory, expected a readable file"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_used_is_told(check, text, expected):
    assert check(text)[0].startswith(expected)


def test_everything_is_told_at_once_and_each_mistake_once(check):
    text = """
engines:
- {name: a, url: 'https://127.0.0.1:9', bearer_token_file: t1, name_style: nobodys, engine_version: 0.1.0}
- {name: b, url: 'https://127.0.0.1:9', name_style: x}
usage:
- {name: a, format: nobodys, paths: [x], namespaces: {buckets: 2, key_file: k1}}
- {name: b, format: openai.chat, paths: [x], namespaces: {buckets: 2, key_file: k2}}
prices: {files: [p1, p2]}
inventory: {file: i1}
release: {file: release.yaml}
"""
    assert [line.split(", expected")[0] for line in check(text, release="template: a\n")] == [
        "config.yaml: engines[0].name_style: got nobodys",
        "config.yaml: engines[0].engine_version: got 0.1.0",
        "config.yaml: engines[1].name_style: got x",
        "p1: file: got no such file or directory",
        "p2: file: got no such file or directory",
        "i1: file: got no such file or directory",
        "k1: file: got no such file or directory",
        "config.yaml: usage[0].format: got nobodys",
        "k2: file: got no such file or directory",
        "config.yaml: engines[0].bearer_token_file: got t1 (no such file or directory)",
        "release.yaml: document: got no template_revision",
    ]


def test_a_release_file_may_come_later(check):
    text = """
release: {file: later.yaml}
engines: [{name: a, url: 'http://127.0.0.1:9', release: {file: gone/later.yaml, template: t, template_revision: r}}]
"""
    assert check(text) == [
        Note("release.file", "later.yaml is not there yet; until it is, no release is in force"),
        Note(
            "engines[0].release.file",
            "gone/later.yaml is not there yet; until it is, what stands beside it is in force",
        ),
    ]
    assert check("release: {file: release.yaml}", release="template: t\ntemplate_revision: r\n") == []


def test_a_certificate_with_its_key_is_good(check, tmp_path):
    make_authority(tmp_path, "ca")
    make_certificate(tmp_path, "client", "ca")
    (tmp_path / "token").write_text("t")
    tls = "tls: {ca_file: ca.pem, cert_file: client.pem, key_file: client.key}"
    assert check(f"engines: [{ENGINE}bearer_token_file: token, {tls}}}]") == []
