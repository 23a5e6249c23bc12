"""The whole way: scripted vLLM servers and a growing log, two exporters, Prometheus, Alertmanager, a webhook.

Two templates are released at the same moment: `support` r42 puts a timestamp in front and never reuses anything again,
Two templates are released at once: `support` r42 puts a timestamp in front and never reuses anything again,
shortened by a factor of about 300.
"""

from __future__ import annotations

import json
import re
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import yaml

from prefix_cache_exporter import cli
from prefix_cache_exporter.web.address import Address
from prefix_cache_exporter.web.http import App, Response, Route
from prefix_cache_exporter.web.server import WebServer
from support.process import Exporter, wait_until
from support.programs import Webhook, alertmanager, prometheus

pytestmark = pytest.mark.prometheus
VERSION = "0.32.0"
RECORDED = Path(__file__).parents[1] / "pages" / VERSION / "02_same.prom"
PROMPT, CACHED = 13392, 6144
"""Tokens per tenth of a second: a tenth of the worked example's, 45.9 % of them cached."""
COLD_SECONDS = 6
ALERTS = sorted(path.stem for path in (Path(__file__).parents[2] / "alerts/tests").glob("*.yaml"))
PACK = {
    "interval": "1s",
    "windows": {"short": "5s", "long": "20s", "day": "3m"},
    "release": {"cold_window": f"{COLD_SECONDS}s", "memory": "10m", "window": "1m", "rollout": "10s"},
    "floors": {"baseline_time": "5s", "requests": 10},
    "thresholds": {"log_stalled": "5s", "exporters_gone": "1m"},
    # Longer than the short window, as shipped: the last requests of a draining revision are in it no longer than that.
    "alerts": {name: {"for": "7s", "keep_firing_for": "2s"} for name in ALERTS},
}
ALERTMANAGER = """
route: {{receiver: hook, group_by: [...], group_wait: 0s, group_interval: 1s}}
receivers: [{{name: hook, webhook_configs: [{{url: '{url}'}}]}}]
"""


class Engine:
    """A vLLM server whose page is a recorded one with the counters of a script."""

    def __init__(self):
        self._lines = RECORDED.read_text()
        self.prompt = self.cached = self.finished = 0
        version = Response(json.dumps({"version": VERSION}), content_type="application/json")
        app = App({"/metrics": Route(self._page), "/version": Route(lambda _: version)})
        self._server = WebServer(app, [Address("127.0.0.1", 0)])

    def __enter__(self):
        self._server.start()
        self.url = f"http://{self._server.addresses[0]}"
        return self

    def __exit__(self, *_):
        self._server.stop()

    def serve(self, cached):
        self.prompt, self.cached, self.finished = self.prompt + PROMPT, self.cached + cached, self.finished + 10

    def _page(self, _):
        values = {
            r"vllm:prompt_tokens_total{": self.prompt,
            r"vllm:prompt_tokens_cached_total{": self.cached,
            r"vllm:prefix_cache_queries_total{": self.prompt,
            r"vllm:prefix_cache_hits_total{": self.cached,
            r'vllm:prompt_tokens_by_source_total{engine="0",model_name="tiny",source="local_compute"': (
                self.prompt - self.cached
            ),
            r'vllm:prompt_tokens_by_source_total{engine="0",model_name="tiny",source="local_cache_hit"': self.cached,
            r'vllm:prompt_tokens_cached_by_source_total{engine="0",model_name="tiny",source="device"': self.cached,
            r'vllm:request_success_total{engine="0",finished_reason="stop"': self.finished,
        }
        text = self._lines
        for start, value in values.items():
            text = re.sub(f"^({re.escape(start)}.*) [^ ]+$", rf"\g<1> {value}.0", text, flags=re.MULTILINE)
        return Response(text, content_type="text/plain; version=0.0.4; charset=utf-8")


class Traffic:
    """Ten times a second, requests of both templates reach their engines and the gateway's log."""

    def __init__(self, log, engines):
        self._log, self._engines, self._number = log, engines, 0
        self.cached = dict.fromkeys(engines, CACHED)
        self.revision = "r41"
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()

    def _run(self):
        with self._log.open("a") as log:
            while not self._stop.wait(0.1):
                for template, engine in self._engines.items():
                    engine.serve(self.cached[template])
                    self._number += 1
                    log.write(self._line(template, self.cached[template]))
                log.flush()

    def _line(self, template, cached):
        usage = {"prompt_tokens": PROMPT, "completion_tokens": 1, "total_tokens": PROMPT + 1}
        usage["prompt_tokens_details"] = {"cached_tokens": cached}
        metadata = {"template": template, "revision": self.revision}
        record = {"id": f"r{self._number}", "model": "tiny", "created": int(time.time()), "usage": usage}
        return json.dumps({**record, "metadata": metadata}) + "\n"


def release(folder, template, revision):
    path = folder / f"{template}.yaml"
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps({"template": template, "template_revision": revision}))
    fresh.replace(path)
    return path


def write(path, data):
    path.write_text(yaml.safe_dump(data))
    return path


@pytest.fixture
def rules(tmp_path):
    pack = write(tmp_path / "pack.yaml", PACK)
    assert cli.run(["pack", "--file", str(pack), "--out", str(tmp_path / "generated")]) == 0
    return tmp_path / "generated/alerts"


def engine_config(folder, engines):
    return {
        "state": {"path": str(folder / "engine.db"), "hold_seconds": 1, "commit_seconds": 0.2},
        "engines": [
            {
                "name": f"vllm-{template}",
                "url": engine.url,
                "poll_seconds": 0.5,
                "timeout_seconds": 0.4,
                "release": {"file": str(release(folder, template, "r41"))},
            }
            for template, engine in engines.items()
        ],
    }


def usage_config(folder, log):
    source = {"name": "gateway", "format": "openai.chat", "paths": [str(log)], "settle_seconds": 0.5}
    fields = {"template": "$.metadata.template", "template_revision": "$.metadata.revision"}
    state = {"path": str(folder / "usage.db"), "hold_seconds": 1, "commit_seconds": 0.2}
    return {"state": state, "usage": [{**source, "fields": fields}]}


def scraping(rules, exporters, alerting):
    return yaml.safe_dump(
        {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": [f"{rules}/*.rules.yaml"],
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": [alerting]}]}]},
            "scrape_configs": [
                {
                    "job_name": "prefix-cache-exporter",
                    "static_configs": [{"targets": [one.url.removeprefix("http://") for one in exporters]}],
                }
            ],
        }
    )


def ratio(server, **labels):
    """The qualified ratio that the rules record for these labels."""
    inside = ",".join(f'{key}="{value}"' for key, value in labels.items())
    name = f"{{__name__=~'.*cached_prompt_tokens_per_prompt_tokens:ratio_rate5s_qualified',{inside}}}"
    return [float(one["value"][1]) for one in server.get("/api/v1/query", query=name)["data"]["result"]]


@contextmanager
def watching(folder, rules, configs, bell):
    """Both exporters and Prometheus, killed at the end; state files and blocks stay for the next time."""
    reload = "--config.auto-reload-interval=0.5"
    with ExitStack() as stack:
        exporters = [stack.enter_context(Exporter(f"--config.file={config}", reload)) for config in configs]
        config = scraping(rules, exporters, bell.url.removeprefix("http://"))
        yield stack.enter_context(prometheus(folder, config))


def both_planes_have_baselines(server):
    query = "count({__name__=~'template:.*cached_prompt_tokens_per_prompt_tokens:ratio_baseline'})"
    found = server.get("/api/v1/query", query=query)["data"]["result"]
    return bool(found) and found[0]["value"][1] == "4"


def test_a_release_that_breaks_the_prefix_pages_and_a_healthy_one_does_not(tmp_path, rules):
    log = tmp_path / "gateway.jsonl"
    log.touch()
    with Webhook() as hook, Engine() as support, Engine() as billing:
        engines = {"support": support, "billing": billing}
        configs = [
            write(tmp_path / "engine.yaml", engine_config(tmp_path, engines)),
            write(tmp_path / "usage.yaml", usage_config(tmp_path, log)),
        ]
        with (
            Traffic(log, engines) as traffic,
            alertmanager(tmp_path, ALERTMANAGER.format(url=hook.url)) as bell,
        ):
            with watching(tmp_path, rules, configs, bell) as server:
                wait_until(lambda: both_planes_have_baselines(server), 60)
                assert all(value == pytest.approx(CACHED / PROMPT, abs=0.02) for value in ratio(server))
                time.sleep(COLD_SECONDS)

            # Exporters and Prometheus are killed and come back; what they knew of r41 is still known.
            with watching(tmp_path, rules, configs, bell) as server:
                wait_until(lambda: len(ratio(server)) == 4, 60)
                assert hook.alerts == []

                traffic.revision = "r42"
                traffic.cached = {"support": 0, "billing": 0}  # every release is cold at first
                for template in engines:
                    release(tmp_path, template, "r42")
                time.sleep(COLD_SECONDS / 3)
                traffic.cached["billing"] = CACHED

                def collapsed(plane):
                    return [one for one in hook.alerts if one["labels"].get("plane") == plane]

                wait_until(lambda: collapsed("engine") and collapsed("usage"), 90)
                time.sleep(COLD_SECONDS)  # what the healthy release might yet set off

    pages = [one for one in hook.alerts if one["labels"]["alertname"] == "PrefixCacheCollapsedAfterRelease"]
    common = {"alertname": "PrefixCacheCollapsedAfterRelease", "severity": "critical", "model": "tiny"}
    revision = {"template": "support", "template_revision": "r42"}
    labels = {json.dumps(one["labels"], sort_keys=True) for one in pages}
    assert labels == {
        json.dumps({**common, **revision, "plane": plane, "source": source, "provider": provider}, sort_keys=True)
        for plane, source, provider in (("engine", "vllm-support", "vllm"), ("usage", "gateway", "openai"))
    }
    assert {one["status"] for one in pages} == {"firing"}
    assert all("Revision r42 of template support" in one["annotations"]["description"] for one in pages)
    assert all("a population hit ratio of 0% (0 cached of" in one["annotations"]["description"] for one in pages)
    # The healthy release told nobody anything, and the broken one only what belongs to it.
    assert {(one["labels"].get("template"), one["labels"].get("template_revision")) for one in hook.alerts} == {
        ("support", "r42")
    }, hook.alerts
