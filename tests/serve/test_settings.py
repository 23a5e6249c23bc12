from __future__ import annotations

import pytest

from prefix_cache_exporter.config.load import parse_config
from prefix_cache_exporter.config.model import Config, ReleaseSpec
from prefix_cache_exporter.documents import DocumentError
from prefix_cache_exporter.serve.settings import engines_of, load_settings, prefixes

FILE = """\
web: {listen_address: [":1"], telemetry_path: /m}
state: {path: state.db, hold_seconds: 5}
release: {template: support, template_revision: r1, tokenizer_revision: t1}
engines: [{name: a, url: "http://a:1"}]
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "config.yml").write_text(FILE)
    return tmp_path / "config.yml"


def test_nothing_said_is_the_default():
    assert load_settings(None, {}, {"HOME": "/"}) == Config()


def test_flags_win_key_by_key_and_engines_are_added(file):
    flags = {"web": {"listen_address": [":2"]}, "state": {"path": "/s.db"}, "engines": engines_of(["http://b:2"], None)}
    config = load_settings(file, flags, {})
    assert (config.web.listen_address, config.web.telemetry_path) == ((":2",), "/m")
    assert (str(config.state.path), config.state.hold_seconds) == ("/s.db", 5)
    assert [(engine.name, engine.url) for engine in config.engines] == [("a", "http://a:1"), ("vllm", "http://b:2")]


def test_a_release_is_replaced_as_a_whole(file):
    environment = {"PREFIX_CACHE_RELEASE_TEMPLATE": "search", "PREFIX_CACHE_RELEASE_TEMPLATE_REVISION": "r7"}
    flags = {"release": {"template": "chat", "template_revision": "r9"}}
    assert load_settings(file, {}, {}).release.tokenizer_revision == "t1"
    assert load_settings(file, {}, environment).release == ReleaseSpec(template="search", template_revision="r7")
    assert load_settings(file, flags, environment).release == ReleaseSpec(template="chat", template_revision="r9")
    environment["PREFIX_CACHE_RELEASE_COLD_WINDOW_SECONDS"] = "600"
    assert load_settings(None, {}, environment).release.cold_window_seconds == 600


@pytest.mark.parametrize(
    ("addresses", "names"),
    [
        (["http://127.0.0.1:8000"], ["vllm"]),
        (["http://127.0.0.1:8000", "http://127.0.0.1:8001/metrics"], ["127.0.0.1:8000", "127.0.0.1:8001"]),
        (["a=http://127.0.0.1:8000", "http://b:1"], ["a", "b:1"]),
        (["only=https://127.0.0.1:8000"], ["only"]),
    ],
)
def test_names_of_engines(addresses, names):
    assert [row["name"] for row in engines_of(addresses, "0.32.0")] == names


@pytest.mark.parametrize(
    ("flags", "environment", "message"),
    [
        (
            {"engines": engines_of(["127.0.0.1:8000"], None)},
            {},
            "command line: engines[0].url: got another address, expected an http:// or https:// address of a host",
        ),
        (
            {"engines": engines_of(["http://me:hunter2@h:1"], None)},
            {},
            "command line: engines[0].url: got an address with a user or password, expected bearer_token_file or tls",
        ),
        (
            {"engines": engines_of(["a=http://h:1"], None)},
            {},
            '{file}: engines[1].name: got "a", expected another name than engines[0] has',
        ),
        (
            {"web": {"listen_address": ["10910"]}},
            {},
            "command line: web.listen_address[0]: got 10910, expected `:port`, `host:port` or `[ipv6]:port`",
        ),
        (
            {"release": {"template": "support"}},
            {},
            "command line: release: got no template_revision, expected template and template_revision together",
        ),
        (
            {},
            {"PREFIX_CACHE_RELEASE_TEMPLATE": "support"},
            "environment: document: got no template_revision, expected the key template_revision",
        ),
    ],
)
def test_mistakes_name_who_made_them(file, flags, environment, message):
    with pytest.raises(DocumentError) as caught:
        load_settings(file, flags, environment)
    assert str(caught.value) == message.replace("{file}", str(file))


@pytest.mark.parametrize(
    ("web", "prefix", "base"),
    [
        ("{}", "", ""),
        ("{route_prefix: /x/}", "/x", "/x"),
        ("{external_url: 'https://proxy.example/mon/cache/'}", "/mon/cache", "/mon/cache"),
        ("{external_url: 'https://proxy.example/mon/cache/', route_prefix: /}", "", "/mon/cache"),
        ("{external_url: 'https://proxy.example'}", "", ""),
    ],
)
def test_prefixes(web, prefix, base):
    assert prefixes(parse_config(f"web: {web}")) == (prefix, base)
