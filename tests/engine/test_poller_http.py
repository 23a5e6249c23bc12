"""The poller over real sockets: the ways in which a server is not there, or only half (B49)."""

from __future__ import annotations

import pytest

from prefix_cache_exporter.config.model import EngineSource
from prefix_cache_exporter.engine.poller import EnginePoller
from support.engine_source import TEXT, Bench, maps, recorded
from support.loopback import Loopback, http

VERSION = http(body=b'{"version": "0.32.0"}')
CUT = b"""\
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{engine="0"} 4096
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{engine="0"} 30"""


def page(step):
    return http(body=recorded("0.32.0")[step], Content_Type=TEXT)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (http("500 Internal Server Error", b"no multiprocess directory"), "http_status"),
        (http(), "empty"),
        (http(body=CUT, Content_Length="5000"), "truncated"),
        (http(body=CUT), "truncated"),
        (http("307 Temporary Redirect", Location="http://elsewhere.example/metrics"), "redirect"),
    ],
)
def test_no_page_is_no_number(answer, reason):
    with Loopback(page("01_cold"), VERSION, page("02_same"), answer) as server:
        bench = Bench()
        source = EngineSource(name="vllm", url=server.url)
        poller = EnginePoller(source, bench.recorder, bench, maps(), clock=bench.clock, monotonic=bench.monotonic)
        assert [poller.poll(), poller.poll(), poller.poll()] == [None, None, reason]
        poller.close()
    bench.recorder.commit()
    assert bench.shown("up") == {"": 0}
    assert bench.shown("poll_errors_total") == {f"reason={reason}": 1}
    assert (bench.total("prompt_tokens"), bench.total("cached_prompt_tokens")) == (474, 384)


def test_a_redirect_to_the_same_host_is_followed():
    here = http("307 Temporary Redirect", Location="/v2/metrics")
    with Loopback(here, page("01_cold"), VERSION, here, page("02_same")) as server:
        bench = Bench()
        poller = EnginePoller(EngineSource(name="vllm", url=server.url), bench.recorder, bench, maps())
        assert [poller.poll(), poller.poll()] == [None, None]
        poller.close()
    bench.recorder.commit()
    assert bench.shown("up") == {"": 1}
    assert bench.total("prompt_tokens") == 474


def test_nobody_listens():
    with Loopback(VERSION) as server:
        url = server.url
    bench = Bench()
    poller = EnginePoller(EngineSource(name="vllm", url=url), bench.recorder, bench, maps())
    assert poller.poll() == "refused"
    assert poller.step(draining=True) is None
    poller.close()
    assert bench.shown("up") == {"": 0}
