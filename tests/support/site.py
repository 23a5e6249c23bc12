"""A process of paper for the pages to look into, and a client that talks to them without a socket."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from wsgiref.util import setup_testing_defaults
from wsgiref.validate import validator

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily


class Ledger:
    """Two families of the engine plane, one of the usage plane, one of the exporter itself."""

    def collect(self):
        counter = CounterMetricFamily("prefix_cache_engine_prompt_tokens", "Prompt tokens.", labels=["source"])
        counter.add_metric(["vllm"], 100)
        yield counter
        gauge = GaugeMetricFamily("prefix_cache_engine_up", "Up.", labels=["source"])
        gauge.add_metric(["vllm"], 1)
        yield gauge
        name = "prefix_cache_usage_duration_seconds"
        histogram = HistogramMetricFamily(name, "Duration.", labels=["source"])
        histogram.add_metric(["log"], [("1.0", 2), ("+Inf", 3)], 4.5)
        yield histogram
        yield CounterMetricFamily("prefix_cache_exporter_state_writes", "Writes.", value=7)


@dataclass
class Inside:
    version: str = "prefix-cache-exporter 1.2.3"
    ledger: Ledger = field(default_factory=Ledger)
    runtime: tuple = (CollectorRegistry(),)
    is_ready: bool = True
    is_caught_up: bool = True
    mistake: str | None = None
    reloads: int = 0
    errors: list = field(default_factory=list)

    def reload(self):
        self.reloads += 1
        return self.mistake

    def status_page(self):
        return b"<!doctype html>"

    def shown_config(self):
        return "engines: []\n"

    def count_error(self, worker):
        self.errors.append(worker)


def request(app, path, method="GET", query="", **headers):
    """Calls a WSGI application as PEP 3333 wants it; answers status code, headers by lower-case name and body."""
    environ = {"REQUEST_METHOD": method, "PATH_INFO": path, "QUERY_STRING": query, "SCRIPT_NAME": ""}
    setup_testing_defaults(environ)
    environ["wsgi.input"] = io.BytesIO()
    environ |= {f"HTTP_{name.upper()}": value for name, value in headers.items()}
    answer = {}

    def start_response(status, response_headers, exc_info=None):
        answer["status"], answer["headers"] = int(status[:3]), response_headers
        return lambda _: None

    chunks = validator(app)(environ, start_response)
    body = b"".join(chunks)
    chunks.close()
    return answer["status"], {name.lower(): value for name, value in answer["headers"]}, body
