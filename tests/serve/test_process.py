"""The exporter as a real process: start, signals, reload, the page that Prometheus sees, and the end."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

import pytest
import requests
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics

from prefix_cache_exporter.demo.recording import Replay, load_recording
from prefix_cache_exporter.web.address import Address
from prefix_cache_exporter.web.server import WebServer
from support.engine_source import expected
from support.process import Exporter, total, wait_until

RUN = "0.32.0"


def usage(name, cached=0):
    """One line of a gateway's log."""
    counts = {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11}
    return json.dumps({"id": name, "usage": {**counts, "prompt_tokens_details": {"cached_tokens": cached}}}) + "\n"


@pytest.fixture
def replay():
    replay = Replay(load_recording(RUN))
    server = WebServer(replay.app(), [Address("127.0.0.1", 0)])
    server.start()
    replay.url, replay.stop = f"http://{server.addresses[0]}", server.stop
    yield replay
    server.stop()


@pytest.fixture
def silent():
    """A server that accepts and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def config(folder, text):
    file = folder / "config.yml"
    file.write_text(text)
    return f"--config.file={file}"


def test_a_recorded_run_through_a_running_exporter(replay, tmp_path):
    """From a fresh start to the page that Prometheus scrapes: exactly what vLLM's responses account for."""
    flags = ["--template=support", "--template-revision=r42"]
    engine = f"{{name: vllm, url: '{replay.url}', poll_seconds: 0.1}}"
    file = config(tmp_path, f"state: {{path: state.db, hold_seconds: 0, commit_seconds: 0.05}}\nengines: [{engine}]\n")
    with Exporter(file, *flags) as exporter:
        while True:
            assert replay.wait_for_polls(2, 30)
            if not replay.advance():
                break
        sums = {}
        for increases in expected(RUN).values():
            for measure, increase in increases.items():
                sums[measure] = sums.get(measure, 0) + increase
        labels = {"template": "support", "template_revision": "r42", "source": "vllm", "model": "tiny"}

        def counted():
            page = exporter.page()
            return {name: total(page, f"prefix_cache_engine_{name}_total", **labels) for name in sums}

        wait_until(lambda: counted() == sums)
        assert (sums["cached_prompt_tokens"], sums["prompt_tokens"]) == (6784, 15263)
        _promtool(exporter.page())
        asked = {"Accept": "application/openmetrics-text; version=1.0.0"}
        families = {
            one.name for one in read_openmetrics(requests.get(f"{exporter.url}/metrics", headers=asked, timeout=5).text)
        }
        assert {"prefix_cache_engine_prompt_tokens", "prefix_cache_engine_time_to_first_token_seconds"} <= families
        assert requests.get(f"{exporter.url}/-/ready", timeout=5).text == "ready\n"
        assert "template_revision: r42" in requests.get(f"{exporter.url}/config", timeout=5).text
        assert "6,784" in requests.get(exporter.url, timeout=5).text
        replay.stop()
        exporter.send(signal.SIGTERM)
        assert exporter.end() == 0
        assert "drained=done" in exporter.log

    with Exporter(file, *flags) as exporter:  # the ledger outlives the process
        wait_until(lambda: exporter.total("prefix_cache_engine_prompt_tokens_total") == 15263)


def _promtool(page):
    """What Debian's promtool says of a page; nothing is right."""
    checked = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


def test_a_start_without_any_source_answers():
    with Exporter("--log.format=json", "--web.disable-exporter-metrics") as exporter:
        wait_until(lambda: len(exporter.lines) > 2)
        assert "process_" not in exporter.page()
    assert [json.loads(line)["msg"] for line in exporter.lines] == [
        "starting",
        "listening",
        "no source is configured: name one with --vllm or in a configuration file",
    ]


def test_prometheus_can_scrape_it_before_anything_is_there(silent):
    with Exporter("--vllm=http://127.0.0.1:9", f"--vllm=slow={silent}") as exporter:
        wait_until(lambda: 'up{source="127.0.0.1:9"} 0' in exporter.page())
        page = exporter.page()
        _promtool(page)
        assert "prefix_cache_exporter_build_info{" in page
        assert "process_resident_memory_bytes" in page
        assert "prefix_cache_exporter_config_last_reload_successful 1.0" in page
        exporter.send(signal.SIGTERM)
        exporter.send(signal.SIGTERM)
        assert exporter.end() == 0


def test_the_pod_ends(replay, tmp_path):
    """B50: the exporter goes on while the engine does, and reads what was logged meanwhile."""
    log = tmp_path / "usage.jsonl"
    log.write_text(usage("L1"))
    file = config(
        tmp_path,
        "state: {path: state.db, hold_seconds: 0, commit_seconds: 0.05}\n"
        f"engines: [{{name: vllm, url: '{replay.url}', poll_seconds: 0.2}}]\n"
        f"usage: [{{name: log, format: openai.chat, paths: [{log}]}}]\n",
    )
    requests_total = "prefix_cache_usage_requests_total"
    with Exporter(file) as exporter:
        wait_until(lambda: exporter.total(requests_total) == 1)
        with log.open("a") as more:
            more.write(usage("L2"))
        exporter.send(signal.SIGTERM)
        wait_until(lambda: "msg=ending" in exporter.log)
        began = time.monotonic()
        with log.open("a") as more:
            more.write(usage("L3"))
        wait_until(lambda: exporter.total(requests_total) == 3)  # it goes on serving
        replay.stop()
        assert exporter.end() == 0
        assert time.monotonic() - began < 20
        assert "drained=done" in exporter.log
    with Exporter(file) as exporter:
        wait_until(lambda: exporter.total(requests_total) == 3)


def test_a_process_that_ends_before_it_listens_says_why(tmp_path):
    """Tests of a running exporter fail with its own words, and not over a port that is not there."""
    file = config(tmp_path, "engines: [{name: vllm}]")
    with pytest.raises(AssertionError, match=r"ended with 1 before it listened:\n.*got no url"), Exporter(file):
        pass


def test_an_engine_that_hangs_does_not_keep_it_from_ending(silent):
    with Exporter(f"--vllm={silent}", "--shutdown.grace-seconds=1") as exporter:
        began = time.monotonic()
        exporter.send(signal.SIGTERM)
        assert exporter.end() == 0
        assert time.monotonic() - began < 4
        assert "drained=grace" in exporter.log


def test_a_second_signal_ends_at_once(silent):
    with Exporter(f"--vllm={silent}", "--shutdown.grace-seconds=600") as exporter:
        exporter.send(signal.SIGTERM)
        wait_until(lambda: "msg=ending" in exporter.log)
        assert requests.get(f"{exporter.url}/-/healthy", timeout=5).status_code == 200
        exporter.send(signal.SIGTERM)
        assert exporter.end(10) == 0
        assert "drained=signal" in exporter.log


def test_reloads(tmp_path):
    file = tmp_path / "config.yml"
    file.write_text("engines: [{name: a, url: 'http://127.0.0.1:9'}]")
    ok = "prefix_cache_exporter_config_last_reload_successful"
    with Exporter(f"--config.file={file}") as exporter:
        wait_until(lambda: 'up{source="a"} 0' in exporter.page())
        file.write_text("engines: [{name: b, url: 'http://127.0.0.1:9'}]")
        exporter.send(signal.SIGHUP)
        wait_until(lambda: 'up{source="b"} 0' in exporter.page())
        assert 'up{source="a"}' not in exporter.page()

        file.write_text("engines: [{name: c}]")
        answer = requests.post(f"{exporter.url}/-/reload", timeout=10)
        complaint = f"{file}: engines[0]: got no url, expected the key url"
        assert answer.status_code == 500
        assert answer.text.endswith(f": the old configuration stays in force: {complaint}\n")
        assert exporter.total(ok) == 0
        assert "name: b" in requests.get(f"{exporter.url}/config", timeout=10).text

        file.write_text("engines: []")
        assert requests.put(f"{exporter.url}/-/reload", timeout=10).text == "reloaded\n"
        assert exporter.total(ok) == 1
        assert "prefix_cache_engine_up" not in exporter.page()


def test_a_config_map_is_swapped(tmp_path):
    """B37: a good one is taken without anybody asking, a bad one is not."""
    texts = {"one": "usage: []", "two": "engines: [{name: b, url: 'http://127.0.0.1:9'}]", "three": "x: ["}
    for turn, text in texts.items():
        (tmp_path / turn).mkdir()
        (tmp_path / turn / "config.yml").write_text(text)
    (tmp_path / "..data").symlink_to("one")
    (tmp_path / "config.yml").symlink_to("..data/config.yml")

    def swap(turn):
        (tmp_path / "new").symlink_to(turn)
        (tmp_path / "new").rename(tmp_path / "..data")

    ok = "prefix_cache_exporter_config_last_reload_successful"
    with Exporter(f"--config.file={tmp_path}/config.yml", "--config.auto-reload-interval=0.1") as exporter:
        swap("two")
        wait_until(lambda: 'up{source="b"} 0' in exporter.page())
        swap("three")
        wait_until(lambda: exporter.total(ok) == 0)
        assert 'up{source="b"} 0' in exporter.page()
        assert len(re.findall('msg="configuration loaded"', exporter.log)) == 1


def run(*arguments, environment=None):
    command = [sys.executable, "-m", "prefix_cache_exporter", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=environment)
    return done.returncode, done.stdout, done.stderr


def test_what_keeps_it_from_starting(tmp_path):
    bad = tmp_path / "bad.yml"
    bad.write_text("limits: {series: 0}")
    complaint = f"error: {bad}: limits.series: got 0, expected at least 1\n"
    assert run("--config.file", str(bad)) == (1, "", complaint)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        code, _, err = run(f"--web.listen-address={address}")
        good = tmp_path / "good.yml"
        good.write_text(f"web: {{listen_address: ['127.0.0.1:0', '{address}']}}")
        by_file = run("--config.file", str(good))
    assert code == 1
    said = f"{address}, address already in use, expected an address of this machine that is free"
    assert err.splitlines()[-1] == f"error: command line: --web.listen-address: got {said}"
    assert by_file[0] == 1
    assert by_file[2].splitlines()[-1] == f"error: {good}: web.listen_address[1]: got {said}"
    environment = {**os.environ, "PREFIX_CACHE_RELEASE_TEMPLAT": "x"}
    code, _, err = run(environment=environment)
    assert code == 1
    assert err.startswith("error: environment: document: got the unknown key templat")
    code, _, err = run("--no-such-flag")
    assert code == 2
    assert "unrecognized arguments: --no-such-flag" in err
