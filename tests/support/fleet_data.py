"""A small fleet's history as OpenMetrics text: busy for four hours with one release in the middle, then idle, then gone.

Made from the catalogue, so that every family of the exporter's page is there; numbers are plausible, not recorded.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from prefix_cache_exporter import measures

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prefix_cache_exporter.measures import Family

STEP = 60
"""Seconds between two samples."""
BUSY, IDLE = 4 * 3600, 3600
RELEASE = 2 * 3600
"""The new revision's first traffic, in seconds from the start."""
WARM_UP = 1800
PODS = ("pod-0", "pod-1")
BOUNDS = ("0.01", "0.05", "0.1", "0.25", "0.5", "1.0", "2.5", "5.0", "10.0", "60.0", "+Inf")

ENGINE = {"source": "llama-a", "provider": "vllm", "model": "org/base-7b"}
GATEWAY = {"source": "gateway", "provider": "openai", "model": "gpt-large"}
_EXTRA = {
    "reason": ("timeout",),
    "tier": ("device", "host"),
    "ttl": ("5m",),
    "currency": ("USD",),
    "component": ("read", "write", "uncached"),
    "namespace": ("acme", ""),
    "task": ("chat",),
    "status": ("success", "failed"),
    "attempt": ("first", "retry"),
    "prompt_band": ("512-2048", "2048-8192"),
    "cache_state": ("hit", "miss"),
    "sleep_state": ("awake",),
    "state": ("verified", "unverified", "mismatch", "unknown"),
    "caveat": ("retried_lookups",),
    "measure": ("block_lifetime_seconds",),
    "kind": ("cached_exceeds_input",),
    "direction": ("past",),
    "label": ("namespace",),
    "family": ("prefix_cache_usage_requests",),
    "worker": ("web",),
    "engine": ("0",),
    "engine_version": ("0.26.0",),
    "metric_map": ("vllm/0.26.0",),
    "prefix_caching": ("True",),
    "hash_algorithm": ("builtin",),
    "version": ("0.1.0",),
    "revision": ("abc",),
    "python_version": ("3.11",),
    "tokenizer_revision": ("t1",),
    "model_revision": ("m1",),
    "release_fingerprint": ("f1",),
    "leading_fingerprint": ("l1",),
    "predecessor_revision": ("",),
}
_TOKENS = 4000.0
_SHARE = {
    "cached_prompt_tokens": 0.6,
    "lookup_tokens": 1.05,
    "lookup_hit_tokens": 0.62,
    "external_lookup_tokens": 0.4,
    "external_lookup_hit_tokens": 0.1,
    "excluded_prompt_tokens": 0.02,
    "cached_tokens_by_tier": 0.3,
    "prefill_computed_tokens": 0.4,
    "generation_tokens": 0.2,
    "preemptions": 2e-6,
    "finished_requests": 0.0008,
    "requests": 0.0008,
    "reported_requests": 0.0007,
    "unreported_requests": 0.0001,
    "hit_requests": 0.0005,
    "unreported_prompt_tokens": 0.1,
    "written_prompt_tokens": 0.05,
    "uncached_prompt_tokens": 0.3,
    "output_tokens": 0.2,
    "eligible_tokens": 0.7,
    "eligible_cached_tokens": 0.55,
    "eligible_requests": 0.0006,
    "input_cost": 1e-6,
    "output_cost": 2e-6,
    "counterfactual_input_cost": 2.2e-6,
    "priced_requests": 0.0007,
    "unpriced_requests": 0.0001,
}
_REUSE = {
    "cached_prompt_tokens",
    "lookup_hit_tokens",
    "hit_requests",
    "eligible_cached_tokens",
    "cached_tokens_by_tier",
}
_LEVEL = {
    "kv_usage_ratio": 0.71,
    "running_requests": 12,
    "waiting_requests": 3,
    "block_size_tokens": 16,
    "capacity_tokens": 400_000,
    "poll_duration_seconds": 0.02,
    "leading_fingerprints": 40,
    "leading_fingerprint_requests": 900,
    "log_unread_bytes": 2048,
    "open_records": 4,
    "log_files": 1,
    "series": 900,
    "unmapped_models": 0,
    "release_cold_window_seconds": 1800,
    "release_predicted_population_hit_ratio": 0.6,
}
_QUIET = {"internal_errors", "state_write_failures", "label_overflow", "series_overflow", "lost_lines", "lost_files"}


@dataclass(frozen=True, slots=True)
class Line:
    """One series: name, labels text, and what it does."""

    family: Family
    part: str
    labels: dict[str, str]
    rate: float
    started: float
    ends: float

    def at(self, seconds: float) -> float | None:
        """Its value at a time from the start; None before it exists."""
        if seconds < self.started - 60:
            return None
        busy = min(max(seconds - self.started, 0), self.ends - self.started)
        if self.family.id not in _REUSE or self.labels.get("template_revision") != "r42":
            return self.rate * busy
        cold = min(busy, WARM_UP)
        return self.rate * (0.1 * cold + 0.75 * (busy - cold))


def openmetrics(start: float) -> str:
    """The whole history; the first sample is at `start`, in seconds since 1970."""
    blocks = []
    for family in measures.FAMILIES.values():
        rows = [row for line in lines(family) for row in _samples(line, start)]
        kind = {"info": "gauge"}.get(family.kind, family.kind)
        blocks.append(f"# TYPE {family.name} {kind}\n" + "".join(rows))
    for pod in PODS:
        rows = [f'up{{job="prefix-cache-exporter",instance="{pod}"}} 1 {start + at:.0f}\n' for at in _times()]
        blocks.append("".join(rows) if pod != PODS[0] else "# TYPE up gauge\n" + "".join(rows))
    return "".join(blocks) + "# EOF\n"


def lines(family: Family) -> Iterator[Line]:
    """Every series of one family."""
    for place in _places(family):
        extra = [name for name in family.labels if name not in place]
        for values in product(*(_EXTRA[name] for name in extra)):
            labels = {**place, **dict(zip(extra, values, strict=True))}
            if not (labels.get("status") == "failed" and labels.get("attempt") == "retry"):
                yield from _of(family, labels)


def _places(family: Family) -> Iterator[dict[str, str]]:
    """Where a family has series: pods, sources, templates and revisions."""
    if "source" not in family.labels:
        places: Iterable[dict[str, str]] = [{}]
    elif family.plane == "engine":
        places = [ENGINE]
    elif family.plane == "usage":
        places = [ENGINE, GATEWAY] if "model" in family.labels else [{"source": "llama-a"}, {"source": "gateway"}]
    else:
        places = [ENGINE]
    pods = PODS[:1] if family.plane == "usage" else PODS
    for pod, place in product(pods, places):
        known = {"job": "prefix-cache-exporter", "instance": pod, **place}
        known = {name: value for name, value in known.items() if name in {*family.labels, "job", "instance"}}
        if "template_revision" not in family.labels:
            yield known
            continue
        for template, revision in (("support", "r41"), ("support", "r42"), ("sales", "r7")):
            yield {**known, "template": template, "template_revision": revision}


def _of(family: Family, labels: dict[str, str]) -> Iterator[Line]:
    revision = labels.get("template_revision")
    started, ends = (RELEASE if revision == "r42" else 0), (RELEASE if revision == "r41" else BUSY)
    share = len([name for name in labels if name in {"namespace", "status", "attempt", "ttl", "component", "tier"}])
    rate = _SHARE.get(family.id, 0 if family.id in _QUIET else 1e-6 if family.kind == "counter" else 0) * _TOKENS
    if family.id == "prompt_tokens":
        rate = _TOKENS
    rate = (rate or 0) / (1 + share)
    if labels.get("status") == "failed" or labels.get("attempt") == "retry":
        rate *= 0.03
    if family.kind != "histogram":
        yield Line(family, "", labels, rate, started, ends)
        return
    for place, bound in enumerate(BOUNDS):
        slow = 2 if labels.get("cache_state") == "miss" else 0
        seen = 1 / (1 + 2.718 ** (5 + slow - place))
        yield Line(family, "_bucket", {**labels, "le": bound}, seen if bound != "+Inf" else 1.0, started, ends)
    yield Line(family, "_sum", labels, 0.8, started, ends)
    yield Line(family, "_count", labels, 1.0, started, ends)


def _samples(line: Line, start: float) -> Iterator[str]:
    text = ",".join(f'{name}="{value}"' for name, value in line.labels.items())
    name = f"{line.family.name}{line.part}" if line.part else line.family.series_name
    for at in _times():
        value = _gauge(line, start, at) if line.family.kind in {"gauge", "info"} else line.at(at)
        if value is not None:
            yield f"{name}{{{text}}} {value:.9g} {start + at:.0f}\n"


def _gauge(line: Line, start: float, at: float) -> float | None:
    """A level: constant, a time, or a state."""
    id_ = line.family.id
    if at < line.started:
        return None
    if id_ == "release_first_traffic_timestamp_seconds":
        return start + line.started
    if id_.endswith("timestamp_seconds"):
        return start + min(at, BUSY)
    if id_ == "map_state":
        return float(line.labels["state"] == "verified")
    if id_ in {"leading_fingerprints"} and line.labels.get("template_revision") == "r42":
        return 700
    return _LEVEL.get(id_, 1)


def _times() -> range:
    return range(0, BUSY + IDLE + 1, STEP)
