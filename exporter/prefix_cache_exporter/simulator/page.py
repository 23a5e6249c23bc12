"""The metrics page of a vLLM release, filled by the model.

vLLM makes its page with prometheus_client, and so does this: names, types, HELP, `_created` and number forms come out
alike because the same library writes them. `page.yaml` says which families a release has.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

from prefix_cache_exporter.documents import parse_yaml

from .http import Http
from .rules import parse_version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .engine import Engine
    from .requests import Request
    from .residency import Eviction
    from .terms import Settings

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class _Level:
    """A series of a counter or gauge and the value of the model that it shows."""

    series: Counter | Gauge
    shows: str


class Page:
    """The page of one server with one engine; also the observer that fills its histograms.

    Args:
        version: the vLLM release.
        settings: of the engine, for `vllm:cache_config_info` and the length buckets.
        model_name: the served model's name.
        engine: the data-parallel rank.

    Raises:
        UnknownVersionError: a release that there are no facts about.
    """

    def __init__(self, version: str, settings: Settings, model_name: str, engine: str = "0") -> None:
        self._registry = CollectorRegistry()
        self._labels = {"model_name": model_name, "engine": engine}
        self._levels: list[_Level] = []
        self._shown: dict[_Level, float] = {}
        self._histograms: dict[str, Histogram] = {}
        GCCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        ProcessCollector(registry=self._registry)
        for family in _families(version):
            if not family.get("residency") or settings.residency_sample is not None:
                self._add(family, settings)
        self._add_cache_config(version, settings, engine)
        self._http = Http(self._registry, _facts()["buckets"])

    def render(self, engine: Engine) -> bytes:
        """The body of `/metrics`."""
        values = _values(engine)
        for level in self._levels:
            value = values[level.shows]
            if isinstance(level.series, Gauge):
                level.series.set(value)
            else:
                level.series.inc(value - self._shown.get(level, 0.0))
                self._shown[level] = value
        return generate_latest(self._registry)

    def http(
        self, handler: str, *, status: int, seconds: float, received: int, sent: int, method: str = "POST"
    ) -> None:
        """Counts a call as the server's HTTP instrumentation does, which leaves out `/metrics` and its like."""
        self._http.observe(handler, method, f"{status // 100}xx", seconds, (received, sent))

    def first_token(self, request: Request, seconds: float) -> None:
        """A request gave its first token so long after it arrived."""
        del request
        self._observe("first_token_seconds", seconds)

    def next_token(self, seconds: float) -> None:
        """Another token came so long after the one before."""
        self._observe("next_token_seconds", seconds)

    def step(self, tokens: int) -> None:
        """A step gave output for so many tokens."""
        self._observe("step_tokens", tokens)

    def finished(self, request: Request, now: float) -> None:
        """A request generated all its tokens."""
        scheduled = request.arrived if request.scheduled is None else request.scheduled
        decoding = now - request.first_token
        for name, value in (
            ("request_prompt", request.prompt.length),
            ("request_generated", request.generated),
            ("request_max_tokens", request.max_tokens),
            ("request_preemptions", request.preemptions),
            ("request_computed", request.prompt.length - request.cached),
            ("request_seconds", now - request.arrived),
            ("queue_seconds", scheduled - request.arrived),
            ("inference_seconds", now - scheduled),
            ("prefill_seconds", request.first_token - scheduled),
            ("decode_seconds", decoding),
            ("request_token_seconds", decoding / (request.generated - 1) if request.generated > 1 else 0.0),
        ):
            self._observe(name, value)
        if not request.family.open:
            self._observe("family_n", request.family.n)
            self._observe("family_longest", request.family.longest)

    def evicted(self, eviction: Eviction) -> None:
        """A sampled block was handed out anew."""
        self._observe("block_lifetime", eviction.lifetime)
        self._observe("block_idle", eviction.idle)
        for gap in eviction.gaps:
            self._observe("block_gap", gap)

    def _observe(self, name: str, value: float) -> None:
        if (histogram := self._histograms.get(name)) is not None:
            histogram.observe(value)

    def _add(self, family: Mapping[str, Any], settings: Settings) -> None:
        labels = self._labels if family.get("engine_label", True) else {"model_name": self._labels["model_name"]}
        if family["type"] == "histogram":
            bounds = _length_bounds(settings.max_model_len) if family["buckets"] == "lengths" else family["bounds"]
            histogram = Histogram(family["name"], family["help"], [*labels], registry=self._registry, buckets=bounds)
            self._histograms[family["shows"]] = histogram.labels(**labels)
            return
        make = Counter if family["type"] == "counter" else Gauge
        label = family.get("label")
        names = [*labels, label] if label else [*labels]
        metric = make(family["name"], family["help"], names, registry=self._registry)
        for value, shows in family.get("values", {None: family.get("shows", 0)}).items():
            series = metric.labels(**labels, **({label: value} if label else {}))
            if shows:
                self._levels.append(_Level(series, shows))

    def _add_cache_config(self, version: str, settings: Settings, engine: str) -> None:
        facts = _facts()["cache_config_info"]
        release = parse_version(version)
        recorded = [labels for since, labels in facts["labels"].items() if parse_version(since) <= release][-1]
        filled = _cache_config(settings) | {"engine": engine}
        labels = {name: filled[name] if value is None else value for name, value in recorded.items()}
        Gauge("vllm:cache_config_info", facts["help"], [*labels], registry=self._registry).labels(**labels).set(1)


def _values(engine: Engine) -> dict[str, float]:
    counts = engine.counts
    return {
        "prompt": counts.prompt,
        "cached": counts.cached,
        "computed": counts.prompt - counts.cached,
        "generated": counts.generated,
        "lookup": counts.lookup,
        "lookup_hit": counts.lookup_hit,
        "preemptions": counts.preemptions,
        "finished": counts.finished,
        "running": len(engine.running),
        "waiting": len(engine.waiting),
        "kv_usage": engine.pool.usage,
        "one": 1,
    }


def _cache_config(settings: Settings) -> dict[str, str]:
    blocks, size = settings.blocks, settings.block_size
    capacity = None if blocks is None else blocks * size
    return {
        "block_size": str(size),
        "effective_attention_block_size": str(size),
        "enable_prefix_caching": "True",
        "num_gpu_blocks": str(blocks),
        "num_gpu_blocks_override": str(blocks if settings.blocks_overridden else None),
        "kv_cache_size_tokens": str(capacity),
        "kv_cache_max_concurrency": str(None if capacity is None else capacity / settings.max_model_len),
        "user_specified_block_size": str(settings.block_size_set),
    }


def _families(version: str) -> Iterator[dict[str, Any]]:
    """The families of a release, with their label values and bucket bounds put in."""
    release = parse_version(version)
    facts = _facts()
    for family in facts["families"]:
        if "since" in family and parse_version(family["since"]) > release:
            continue
        if "until" in family and parse_version(family["until"]) <= release:
            continue
        values = {"values": dict(_present(family["values"], release))} if "values" in family else {}
        bounds = {"bounds": facts["buckets"].get(family["buckets"])} if "buckets" in family else {}
        yield family | values | bounds


def _present(values: Mapping[str, Any], release: tuple[int, ...]) -> Iterator[tuple[str, Any]]:
    for name, shows in values.items():
        value, _, since = name.partition("@")
        if not since or parse_version(since) <= release:
            yield value, shows


def _length_bounds(longest: int) -> list[int]:
    """1, 2, 5, 10, 20, 50 and so on up to the longest sequence."""
    bounds: list[int] = []
    power = 1
    while True:
        for factor in (1, 2, 5):
            if factor * power > longest:
                return bounds
            bounds.append(factor * power)
        power *= 10


@cache
def _facts() -> dict[str, Any]:
    file = resources.files(__package__) / "page.yaml"
    facts: dict[str, Any] = parse_yaml(file.read_bytes(), "page.yaml")
    return facts
