from __future__ import annotations

import socket
from functools import partial

import pytest
import requests

from prefix_cache_exporter.config.load import parse_config
from prefix_cache_exporter.documents import DocumentError
from prefix_cache_exporter.measures import ENGINE
from prefix_cache_exporter.serve import sidecar as module
from prefix_cache_exporter.serve.ending import Event
from prefix_cache_exporter.serve.rehearsal import rehearse
from prefix_cache_exporter.serve.settings import load_settings
from prefix_cache_exporter.serve.sidecar import Options, Sidecar
from support.clock import Clock
from support.process import total, wait_until

NOWHERE = {"name": "a", "url": "http://127.0.0.1:9"}


def settings(**sections):
    return {"web": {"listen_address": ["127.0.0.1:0"]}, **sections}


def made(flags, options=None):
    return Sidecar(partial(load_settings, None, flags, {}), options)


@pytest.fixture
def running():
    """Starts sidecars and closes them at the end."""
    begun = []

    def start(flags, options=None):
        sidecar = made(flags, options)
        begun.append(sidecar)
        sidecar.start()
        sidecar.url = f"http://{sidecar.web.addresses[0]}"
        sidecar.page = lambda: requests.get(f"{sidecar.url}/metrics", timeout=10).text
        return sidecar

    yield start
    for sidecar in begun:
        sidecar.close()


def test_its_life_from_start_to_the_end_that_a_signal_asks_for():
    sidecar = made(settings(engines=[NOWHERE]))
    assert not sidecar.is_ready
    sidecar.start()
    assert sidecar.is_ready
    sidecar.signals.put(Event.RELOAD)
    sidecar.signals.put(Event.END)
    sidecar.run()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", sidecar.web.addresses[0].port), timeout=5)


def test_health_of_the_exporter_on_its_page(running):
    sidecar = running(settings(), Options(version="prefix-cache-exporter 9", revision="abc"))
    page = sidecar.page()
    assert total(page, "prefix_cache_exporter_build_info", revision="abc") == 1
    assert total(page, "prefix_cache_exporter_config_last_reload_successful") == 1
    assert total(page, "prefix_cache_exporter_config_last_reload_success_timestamp_seconds") > 1.7e9
    assert total(page, "process_resident_memory_bytes") > 1e6
    sidecar.count_error("web")
    sidecar.recorder.commit()
    assert 'prefix_cache_exporter_internal_errors_total{worker="web"}' in sidecar.page()
    assert sidecar.version == "prefix-cache-exporter 9"
    assert "prefix-cache-exporter" in requests.get(sidecar.url, timeout=10).text


def test_caveats_are_said_in_words(running):
    sidecar = running(settings())
    sidecar.recorder.set_gauge(ENGINE["up"], {"source": "vllm"}, 1)
    for caveat in ("preemption_recount", "of_a_map_that_is_gone"):
        sidecar.recorder.set_gauge(ENGINE["caveat"], {"source": "vllm", "caveat": caveat}, 1)
    page = requests.get(sidecar.url, timeout=10).text
    assert "A preempted request is looked up again" in page
    assert "The number may be too high." in page
    assert "of_a_map_that_is_gone" in page


def test_runtime_metrics_can_be_left_out(running):
    assert "process_" not in running(settings(), Options(runtime_metrics=False)).page()


def test_several_addresses(running):
    sidecar = running(settings(web={"listen_address": ["127.0.0.1:0", "localhost:0"]}))
    for address in sidecar.web.addresses:
        assert requests.get(f"http://{address}/-/healthy", timeout=10).text == "healthy\n"


def test_behind_a_proxy(running):
    sidecar = running(settings(web={"listen_address": ["127.0.0.1:0"], "external_url": "https://p.example/cache/"}))
    assert requests.get(f"{sidecar.url}/cache/metrics", timeout=10).status_code == 200
    assert 'href="/cache/metrics"' in requests.get(f"{sidecar.url}/cache/", timeout=10).text


def test_a_changed_source_is_replaced_and_what_needs_a_restart_is_said(running, caplog):
    flags = settings(engines=[NOWHERE])
    sidecar = running(flags)
    wait_until(lambda: 'up{source="a"} 0' in sidecar.page())
    flags["engines"] = [{**NOWHERE, "name": "b"}]
    flags["limits"] = {"series": 5}
    flags["state"] = {"commit_seconds": 0.1}
    assert sidecar.reload() is None
    wait_until(lambda: 'up{source="b"} 0' in sidecar.page())
    assert 'up{source="a"}' not in sidecar.page()
    assert "changes of web, limits and the state's path wait for a restart" in caplog.text
    assert "name: b" in sidecar.shown_config()


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"engines": [{"name": "a"}]}, "command line: engines[0]: got no url, expected the key url"),
        (
            {"engines": [{**NOWHERE, "name_style": "colons"}]},
            "command line: engines[0].name_style: got colons, expected one of auto, native, ray_colon, ray, stripped",
        ),
        (
            {"engines": [{**NOWHERE, "engine_version": "0.1.0"}]},
            "engines[0].engine_version: got 0.1.0, expected a version that a map describes, 0.7.3 or newer",
        ),
        (
            {"maps": {"folders": ["/nowhere"]}},
            "command line: maps.folders[0]: got /nowhere, expected a folder that is there",
        ),
        (
            {"maps": {"folders": ["/bin"]}},
            "maps.folders[0]: got /bin without vllm/ or usage/, expected a folder with one of them, or both",
        ),
    ],
)
def test_a_mistake_keeps_the_old_configuration(running, sections, message):
    flags = settings()
    sidecar = running(flags)
    flags.update(sections)
    assert message in (sidecar.reload() or "")
    page = sidecar.page()
    assert total(page, "prefix_cache_exporter_config_last_reload_successful") == 0
    assert "prefix_cache_engine_up" not in page
    for section in sections:
        del flags[section]
    assert sidecar.reload() is None
    assert total(sidecar.page(), "prefix_cache_exporter_config_last_reload_successful") == 1


def test_counters_wait_for_the_first_poll_but_not_for_ever(running, monkeypatch, caplog):
    """A server that accepts and says nothing: the first poll is never done."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        engine = {"name": "a", "url": url, "timeout_seconds": 30}
        clock = Clock()
        monkeypatch.setattr(module.time, "monotonic", clock)
        sidecar = running(settings(engines=[engine], state={"catch_up_seconds": 60, "commit_seconds": 0.01}))
        assert "prefix_cache_engine_polls_total" not in sidecar.page()
        clock.advance(60)
        assert "prefix_cache_engine_polls_total" in sidecar.page()
        assert "not caught up in time, showing counters all the same" in caplog.text
        assert sidecar.is_caught_up


def test_rehearsing_finds_what_only_loading_finds(tmp_path):
    rehearse(parse_config(""))
    rehearse(parse_config(f"engines: [{{name: a, url: 'http://127.0.0.1:9'}}]\nstate: {{path: {tmp_path}/state.db}}"))
    assert list(tmp_path.iterdir()) == []
    for text in (
        "web: {config_file: /nowhere.yml}",
        "usage: [{name: a, format: nobodys, paths: [/log]}]",
        "engines: [{name: a, url: 'http://127.0.0.1:9', name_style: nobodys}]",
    ):
        with pytest.raises(DocumentError):
            rehearse(parse_config(text))


def broken(*_):
    raise RuntimeError("ours")


def test_what_keeps_it_from_starting_leaves_nothing_running(monkeypatch):
    """An exception of our own must end the process: threads that still listen would keep it, deaf to SIGTERM."""
    monkeypatch.setattr(module.Crew, "assign", broken)
    sidecar = made(settings())
    with pytest.raises(RuntimeError, match="ours"):
        sidecar.start()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", sidecar.web.addresses[0].port), timeout=5)


def test_an_error_of_ours_while_reloading_is_seen(running, monkeypatch, caplog):
    sidecar = running(settings(state={"hold_seconds": 0, "commit_seconds": 0.01}))
    monkeypatch.setattr(module.Crew, "assign", broken)
    assert sidecar.reload() == "an error of the exporter itself; its log has it"
    assert "RuntimeError: ours" in caplog.text
    assert total(sidecar.page(), "prefix_cache_exporter_config_last_reload_successful") == 0
    wait_until(lambda: total(sidecar.page(), "prefix_cache_exporter_internal_errors_total", worker="reload") == 1)
