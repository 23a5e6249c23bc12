from __future__ import annotations

import gzip

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics

from prefix_cache_exporter.web.http import App, Request, Route
from prefix_cache_exporter.web.site import links, site
from support.site import Inside, request

PAGE = """\
# HELP prefix_cache_engine_prompt_tokens_total Prompt tokens.
# TYPE prefix_cache_engine_prompt_tokens_total counter
prefix_cache_engine_prompt_tokens_total{source="vllm"} 100.0
# HELP prefix_cache_engine_up Up.
# TYPE prefix_cache_engine_up gauge
prefix_cache_engine_up{source="vllm"} 1.0
# HELP prefix_cache_usage_duration_seconds Duration.
# TYPE prefix_cache_usage_duration_seconds histogram
prefix_cache_usage_duration_seconds_bucket{le="1.0",source="log"} 2.0
prefix_cache_usage_duration_seconds_bucket{le="+Inf",source="log"} 3.0
prefix_cache_usage_duration_seconds_count{source="log"} 3.0
prefix_cache_usage_duration_seconds_sum{source="log"} 4.5
# HELP prefix_cache_exporter_state_writes_total Writes.
# TYPE prefix_cache_exporter_state_writes_total counter
prefix_cache_exporter_state_writes_total 7.0
"""


def test_the_metrics_page():
    status, headers, body = request(site(Inside()), "/metrics")
    assert (status, body.decode()) == (200, PAGE)
    assert headers == {
        "content-type": "text/plain; version=0.0.4; charset=utf-8",
        "content-length": str(len(PAGE)),
        "x-content-type-options": "nosniff",
        "vary": "Accept, Accept-Encoding",
        "cache-control": "no-store",
    }


def test_openmetrics_where_asked_for():
    status, headers, body = request(site(Inside()), "/metrics", accept="application/openmetrics-text; version=1.0.0")
    assert (status, headers["content-type"]) == (200, "application/openmetrics-text; version=1.0.0; charset=utf-8")
    assert body.endswith(b"# EOF\n")
    assert next(iter(read_openmetrics(body.decode()))).name == "prefix_cache_engine_prompt_tokens"


def test_gzip_where_asked_for():
    _, headers, body = request(site(Inside()), "/metrics", accept_encoding="gzip")
    assert (headers["content-encoding"], gzip.decompress(body).decode()) == ("gzip", PAGE)
    assert headers["content-length"] == str(len(body))


@pytest.mark.parametrize(
    ("query", "lines"),
    [
        ("name[]=prefix_cache_engine_up", ['prefix_cache_engine_up{source="vllm"} 1.0']),
        ("name%5B%5D=prefix_cache_exporter_state_writes_total", ["prefix_cache_exporter_state_writes_total 7.0"]),
        (
            "name[]=prefix_cache_engine_up&name[]=prefix_cache_usage_duration_seconds_count",
            [
                'prefix_cache_engine_up{source="vllm"} 1.0',
                'prefix_cache_usage_duration_seconds_count{source="log"} 3.0',
            ],
        ),
        ("name[]=nothing", []),
        ("name[]=", []),
        ("name=prefix_cache_engine_up", [line for line in PAGE.splitlines() if line[0] != "#"]),
    ],
)
def test_families_by_name(query, lines):
    _, _, body = request(site(Inside()), "/metrics", query=query)
    assert [line for line in body.decode().splitlines() if line[0] != "#"] == lines


@pytest.mark.parametrize("path", ["/metrics", "/", "/config", "/-/healthy", "/-/ready"])
@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_head_has_the_headers_of_get_and_no_body(path, encoding):
    get = request(site(Inside()), path, accept_encoding=encoding)
    head = request(site(Inside()), path, "HEAD", accept_encoding=encoding)
    assert (head[0], head[1], head[2]) == (get[0], get[1], b"")


def test_counters_of_both_planes_wait_until_the_exporter_has_caught_up():
    inside = Inside(is_caught_up=False)
    _, _, body = request(site(inside), "/metrics")
    names = {line.partition("{")[0].partition(" ")[0] for line in body.decode().splitlines() if line[0] != "#"}
    assert names == {"prefix_cache_engine_up", "prefix_cache_exporter_state_writes_total"}
    inside.is_caught_up = True
    assert request(site(inside), "/metrics")[2].decode() == PAGE


def test_the_page_for_a_person():
    status, headers, body = request(site(Inside()), "/")
    assert (status, headers["content-type"], body) == (200, "text/html; charset=utf-8", b"<!doctype html>")
    assert headers["content-security-policy"].startswith("default-src 'none'")


def test_links():
    assert [address for _, address in links("/m", "/base")] == [
        "/base/m",
        "/base/-/healthy",
        "/base/-/ready",
        "/base/config",
    ]


def test_readiness_is_of_the_exporter_alone():
    assert request(site(Inside()), "/-/ready")[::2] == (200, b"ready\n")
    status, headers, body = request(site(Inside(is_ready=False)), "/-/ready")
    assert (status, headers["content-type"], body) == (
        503,
        "text/plain; charset=utf-8",
        b"503 Service Unavailable: still loading\n",
    )
    assert request(site(Inside(is_ready=False)), "/-/healthy")[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_reload(method):
    inside = Inside()
    assert request(site(inside), "/-/reload", method)[::2] == (200, b"reloaded\n")
    assert inside.reloads == 1


def test_a_reload_that_fails_says_why():
    inside = Inside(mistake="config.yml: web: got 1, expected object")
    status, _, body = request(site(inside), "/-/reload", "POST")
    assert (status, body.decode()) == (
        500,
        "500 Internal Server Error: the old configuration stays in force: config.yml: web: got 1, expected object\n",
    )


@pytest.mark.parametrize(
    ("path", "method", "allowed"),
    [
        ("/-/reload", "GET", "POST, PUT, OPTIONS"),
        ("/-/reload", "HEAD", "POST, PUT, OPTIONS"),
        ("/metrics", "POST", "GET, HEAD, OPTIONS"),
        ("/", "DELETE", "GET, HEAD, OPTIONS"),
    ],
)
def test_other_methods_are_refused(path, method, allowed):
    inside = Inside()
    status, headers, _ = request(site(inside), path, method)
    assert (status, headers["allow"], headers["content-type"]) == (405, allowed, "text/plain; charset=utf-8")
    assert inside.reloads == 0


def test_options():
    assert request(site(Inside()), "/-/reload", "OPTIONS")[1]["allow"] == "POST, PUT, OPTIONS"


@pytest.mark.parametrize("path", ["/metrics/", "/metric", "/favicon.ico", "//", "/-/", "/../etc/passwd", "/-/Ready"])
def test_other_paths_are_not_found(path):
    status, headers, body = request(site(Inside()), path)
    assert (status, headers["content-type"], body) == (404, "text/plain; charset=utf-8", b"404 Not Found\n")


def test_an_error_inside_shows_nothing_of_the_inside(caplog):
    def fall(_):
        raise RuntimeError("a secret")

    told = []
    app = App({"/": Route(fall)}, on_error=lambda: told.append(1))
    status, _, body = request(app, "/")
    assert (status, body) == (500, b"500 Internal Server Error: see the exporter's log\n")
    assert (told, caplog.records[0].getMessage()) == ([1], "a page could not be answered")
    assert App({"/": Route(fall)}).answer(Request("GET", "/")).status == 500
    inside = Inside(ledger=None)
    assert request(site(inside), "/metrics")[0] == 500
    assert inside.errors == ["web"]


def test_behind_a_prefix():
    app = site(Inside(), prefix="/prefix-cache")
    assert request(app, "/prefix-cache/metrics")[0] == 200
    assert request(app, "/prefix-cache/")[0] == 200
    assert request(app, "/prefix-cache")[0] == 200
    assert request(app, "/metrics")[0] == 404
    assert request(app, "/prefix-cachemetrics")[0] == 404


def test_metrics_may_be_at_the_root():
    assert request(site(Inside(), telemetry_path="/"), "/")[2].decode() == PAGE
