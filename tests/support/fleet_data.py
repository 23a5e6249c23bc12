"""A small fleet's history as OpenMetrics text: busy with one release in the middle, then idle, then gone.

Made from the catalogue, so that every family of the exporter's page is there; numbers are plausible, not recorded. One
shape of traffic runs through all counters, so that shares between them are what the constants below say. What the
engine's page is said to be agrees with itself: a verified release with the caveats, the excluded tokens and the measure
withheld that preemptions bring there, and the hash algorithm of its time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Final

from prefix_cache_exporter import measures

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from prefix_cache_exporter.measures import Family

STEP: Final = 60
"""Seconds between two samples."""
BUSY: Final = 160 * 60
IDLE: Final = 70 * 60
"""Longer than the long window, so that every rate comes to rest."""
END: Final = BUSY + IDLE
RELEASE: Final = 80 * 60
"""The new revision's first traffic, in seconds from the start."""
WARMING: Final = ((0, 0.08), (10 * 60, 0.33), (25 * 60, 0.58))
"""The new revision's cached share of prompt tokens, from so many seconds after its first traffic on."""
PODS: Final = ("pod-0", "pod-1")

ENGINE: Final = {"source": "llama-a", "provider": "vllm", "model": "org/base-7b"}
GATEWAY: Final = {"source": "gateway", "provider": "openai", "model": "gpt-large"}
REVISIONS: Final = {("support", "r41"): 0.62, ("support", "r42"): WARMING[-1][1], ("sales", "r7"): 0.41}
"""Templates with their revisions, and the cached share of each when warm."""
ALERT: Final = {
    "alertname": "PrefixCacheWeakHashSharedAcrossNamespaces",
    "alertstate": "firing",
    "severity": "warning",
    **ENGINE,
    "hash_algorithm": "builtin",
}
_LABELS: Final[Mapping[str, tuple[str, ...]]] = {
    "tier": ("device", "host"),
    "ttl": ("5m",),
    "currency": ("USD",),
    "component": ("read", "write", "uncached"),
    "namespace": ("acme", "globex", ""),
    "task": ("chat",),
    "prompt_band": ("512-2048", "2048-8192"),
    "cache_state": ("hit", "miss"),
    "sleep_state": ("awake",),
    "state": ("verified", "unverified", "mismatch", "unknown"),
    "caveat": ("preemption_recount", "lookups_exceed_prompt_tokens"),
    "measure": ("cached_prompt_tokens",),
    "direction": ("past",),
    "label": ("namespace",),
    "family": ("prefix_cache_usage_requests",),
    "worker": ("web",),
    "engine": ("0",),
    "engine_version": ("0.10.0",),
    "metric_map": ("vllm/0.10.0",),
    "prefix_caching": ("on",),
    "hash_algorithm": ("builtin",),
    "version": ("0.1.0",),
    "revision": ("abc",),
    "python_version": ("3.11",),
    "tokenizer_revision": ("t1",),
    "model_revision": ("m1",),
    "kind": ("clock_skew",),
}
_REASONS: Final[Mapping[str, tuple[str, ...]]] = {
    "finished_requests": ("stop", "length"),
    "excluded_prompt_tokens": ("preemption_recount",),
    "withheld": ("preemption_recount",),
    "poll_errors": ("timeout",),
    "map_mismatches": ("unexpected",),
    "anomalies": ("not_finite",),
    "unpriced_requests": ("no_price",),
    "quarantined_records": ("read_exceeds_total",),
    "lost_lines": ("not_json",),
    "lost_files": ("vanished",),
    "ignored_lines": ("not_usage",),
}
_TOKENS: Final = 4000.0
"""Prompt tokens per second of one revision on one pod."""
_PRICE, _READ, _WRITE = 2.5e-6, 0.1, 1.25
_WRITTEN: Final = 0.04
_PER_TOKEN: Final[Mapping[str, float]] = {
    "lookup_tokens": 1.04,
    "external_lookup_tokens": 0.4,
    "external_lookup_hit_tokens": 0.1,
    "excluded_prompt_tokens": 0.02,
    "generation_tokens": 0.2,
    "output_tokens": 0.2,
    "preemptions": 4e-6,
    "finished_requests": 6e-4,
    "requests": 6e-4,
    "reported_requests": 5.7e-4,
    "unreported_requests": 0.3e-4,
    "eligible_requests": 5.5e-4,
    "prompt_tokens": 1.0,
    "unreported_prompt_tokens": 0.03,
    "written_prompt_tokens": _WRITTEN,
    "eligible_tokens": 0.7,
    "output_cost": 0.2 * 4 * _PRICE,
    "counterfactual_input_cost": _PRICE,
    "priced_requests": 5.7e-4,
    "unpriced_requests": 0.2e-4,
}
"""What moves with prompt tokens, whatever was cached."""
_PER_SECOND: Final[Mapping[str, float]] = {
    "polls": 0.2,
    "lines": 9.0,
    "state_writes": 1.0,
    "ignored_lines": 0.4,
    "quarantined_records": 0.002,
    "duplicate_records": 0.01,
    "skewed_records": 0.001,
    "poll_errors": 0.0008,
    "restarts": 0.0001,
}
"""Counters that move steadily; every other one stands still at 0."""
_LEVELS: Final[Mapping[str, float]] = {
    "kv_usage_ratio": 0.71,
    "reported_block_hit_ratio": 0.5,
    "running_requests": 12,
    "waiting_requests": 3,
    "block_size_tokens": 16,
    "capacity_tokens": 400_000,
    "poll_duration_seconds": 0.02,
    "leading_fingerprints": 14,
    "leading_fingerprint_requests": 900,
    "log_unread_bytes": 2048,
    "open_records": 4,
    "series": 900,
    "unmapped_models": 0,
    "release_cold_window_seconds": 1800,
    "release_predicted_population_hit_ratio": 0.6,
}
_WAVING: Final = {"kv_usage_ratio", "running_requests", "waiting_requests", "poll_duration_seconds", "log_unread_bytes"}
_FAST, _MIDDLE = ("0.005", "0.01", "0.025", "0.05", "0.1", "0.25"), ("0.05", "0.1", "0.25", "0.5", "1.0", "2.5", "5.0")
_SLOW: Final = ("1.0", "5.0", "10.0", "30.0", "60.0", "300.0", "1200.0")
_HISTOGRAMS: Final[Mapping[str, tuple[float, tuple[str, ...]]]] = {
    "block_lifetime_seconds": (240, _SLOW),
    "block_idle_before_evict_seconds": (45, _SLOW),
    "block_reuse_gap_seconds": (12, _SLOW),
    "time_to_first_token_seconds": (0.3, _MIDDLE),
    "prefill_seconds": (0.22, _MIDDLE),
    "queue_seconds": (0.03, _FAST),
    "inter_token_seconds": (0.018, _FAST),
    "request_seconds": (3.5, _SLOW),
    "duration_seconds": (4, _SLOW),
}
"""Median and bounds of each histogram."""
_SPREAD: Final = 3.0
"""Exponent of the log-logistic distribution of all times."""


@dataclass(frozen=True, slots=True)
class Line:
    """One series: its name, labels, and value at a time from the start (None where it does not exist)."""

    name: str
    labels: Mapping[str, str]
    at: Callable[[float], float | None]


def openmetrics(start: float) -> str:
    """The whole history; the first sample is at `start`, in seconds since 1970."""
    blocks = [_block(family.name, family.kind, lines(family, start), start) for family in measures.FAMILIES.values()]
    up = (Line("up", {"job": "prefix-cache-exporter", "instance": pod}, lambda _: 1.0) for pod in PODS)
    firing = iter([Line("ALERTS", ALERT, lambda at: 1.0 if at >= RELEASE else None)])
    return "".join([*blocks, _block("up", "gauge", up, start), _block("ALERTS", "gauge", firing, start), "# EOF\n"])


def _block(name: str, kind: str, found: Iterator[Line], start: float) -> str:
    rows = [f"# TYPE {name} {'gauge' if kind == 'info' else kind}\n"]
    stamps = [(at, f" {start + at:.0f}\n") for at in range(0, END + 1, STEP)]
    for line in found:
        text = ",".join(f'{label}="{value}"' for label, value in line.labels.items())
        head = f"{line.name}{{{text}}} "
        rows += [f"{head}{value:.13g}{stamp}" for at, stamp in stamps if (value := line.at(at)) is not None]
    return "".join(rows)


def lines(family: Family, start: float) -> Iterator[Line]:
    """Every series of one family."""
    for place in _places(family):
        extra = [label for label in family.labels if label not in place]
        for values in product(*(_values(family, label) for label in extra)):
            labels = place | dict(zip(extra, values, strict=True))
            if family.kind == "histogram":
                yield from _histogram(family, labels)
            elif family.kind == "counter":
                yield Line(family.series_name, labels, _counter(family, labels))
            else:
                yield Line(family.series_name, labels, _gauge(family, labels, start))


def _values(family: Family, label: str) -> tuple[str, ...]:
    if label == "reason":
        return _REASONS.get(family.id, ("other",))
    if label == "namespace" and family.kind == "histogram":
        return ("acme",)
    return _LABELS[label]


def _places(family: Family) -> Iterator[dict[str, str]]:
    """Where a family has series: pods, sources, revisions, outcomes."""
    sources = [ENGINE] if family.plane == "engine" else [ENGINE, GATEWAY]
    pods = PODS[:1] if family.plane == "usage" else PODS
    for pod, source in product(pods, sources if "source" in family.labels else [{}]):
        target = {"job": "prefix-cache-exporter", "instance": pod}
        place = target | {label: value for label, value in source.items() if label in family.labels}
        revisions = REVISIONS if "template_revision" in family.labels else [None]
        outcomes = _outcomes(source) if "status" in family.labels else [{}]
        for revision, outcome in product(revisions, outcomes):
            named = dict(zip(("template", "template_revision"), revision, strict=True)) if revision else {}
            yield place | named | _release(family, named) | outcome


def _release(family: Family, named: Mapping[str, str]) -> dict[str, str]:
    """What a release's info series says beyond its name."""
    if family.id != "release_info":
        return {}
    revision = named["template_revision"]
    before = "r41" if revision == "r42" else ""
    fingerprints = {"release_fingerprint": f"f-{revision}", "leading_fingerprint": f"l-{named['template']}"}
    return fingerprints | {"predecessor_revision": before}


def _outcomes(source: Mapping[str, str]) -> list[dict[str, str]]:
    served = {"status": "success", "attempt": "first"}
    rare = [{"status": "failed", "attempt": "first"}, {"status": "success", "attempt": "retry"}]
    return [served, *rare] if source == GATEWAY else [served]


def _traffic(labels: Mapping[str, str]) -> Callable[[float], float]:
    """Prompt tokens seen until a time: busy in slow waves while the revision is served, then none."""
    revision = labels.get("template_revision")
    began, ended = (RELEASE if revision == "r42" else 0), (RELEASE if revision == "r41" else BUSY)
    weight = {"sales": 0.5}.get(labels.get("template", ""), 1.0)
    weight *= {"acme": 0.5, "globex": 0.3, "": 0.2}[labels["namespace"]] if "namespace" in labels else 1.0
    weight *= 0.03 if "failed" in labels.values() or "retry" in labels.values() else 1.0
    return lambda at: _TOKENS * weight * (_waves(min(max(at, began), ended)) - _waves(began))


def _waves(at: float) -> float:
    """The integral of a rate of 1 with slow waves around it."""
    period, height = 5400 / math.tau, 0.15
    return at - height * period * math.cos(at / period)


def _cached(labels: Mapping[str, str]) -> Callable[[float], float]:
    """Those of them that were cached."""
    seen = _traffic(labels)
    key = (labels.get("template", ""), labels.get("template_revision", ""))
    least = {"globex": 0.85, "": 0.7}.get(labels.get("namespace", "acme"), 1.0)
    steps = [(RELEASE + at, share) for at, share in WARMING] if key[1] == "r42" else [(0, REVISIONS[key])]
    ends = [*(at for at, _ in steps[1:]), math.inf]

    def cached(at: float) -> float:
        parts = zip(steps, ends, strict=True)
        return sum(least * share * (seen(min(at, end)) - seen(begin)) for (begin, share), end in parts if at > begin)

    return cached


def _counter(family: Family, labels: Mapping[str, str]) -> Callable[[float], float | None]:
    if "template_revision" not in labels:
        rate = _PER_SECOND.get(family.id, 0)
        return lambda at: rate * min(at, BUSY)
    seen, cached = _traffic(labels), _cached(labels)
    first = RELEASE if labels["template_revision"] == "r42" else 0
    amount = _amount(family, labels, seen, cached)
    return lambda at: amount(at) if at >= first - STEP else None


def _amount(
    family: Family, labels: Mapping[str, str], seen: Callable[[float], float], cached: Callable[[float], float]
) -> Callable[[float], float]:
    parts = 2 if family.id in {"cached_tokens_by_tier", "finished_requests"} else 1
    component = labels.get("component")
    if component:
        read, write = _PRICE * _READ, _PRICE * _WRITE * _WRITTEN
        plain = _PRICE * (1 - _WRITTEN)
        return {
            "read": lambda at: read * cached(at),
            "write": lambda at: write * seen(at),
            "uncached": lambda at: plain * seen(at) - _PRICE * cached(at),
        }[component]
    if family.id in {"cached_prompt_tokens", "lookup_hit_tokens", "cached_tokens_by_tier"}:
        again = 1.03 if family.id == "lookup_hit_tokens" else 1
        return lambda at: again * cached(at) / parts
    if family.id == "eligible_cached_tokens":
        return lambda at: min(cached(at), 0.69 * seen(at))
    if family.id == "hit_requests":
        return lambda at: 7e-4 * cached(at)
    if family.id in {"prefill_computed_tokens", "uncached_prompt_tokens"}:
        written = _WRITTEN if family.plane == "usage" else 0
        return lambda at: (1 - written) * seen(at) - cached(at)
    share = _PER_TOKEN.get(family.id, 0) / parts
    return lambda at: share * seen(at)


def _histogram(family: Family, labels: Mapping[str, str]) -> Iterator[Line]:
    median, bounds = _HISTOGRAMS[family.id]
    median *= 4 if labels.get("cache_state") == "miss" else 1
    median *= 0.8 if labels.get("template_revision") == "r42" else 1
    median *= 2.5 if labels.get("prompt_band") == "2048-8192" else 1
    seen = _traffic(labels)
    each = 2e-4 if family.plane == "usage" else 6e-4
    for bound in (*bounds, "+Inf"):
        share = each / (1 + (median / float(bound)) ** _SPREAD)
        yield Line(f"{family.name}_bucket", {**labels, "le": bound}, _times(share, seen))
    mean = median * (math.pi / _SPREAD) / math.sin(math.pi / _SPREAD)
    yield Line(f"{family.name}_sum", labels, _times(each * mean, seen))
    yield Line(f"{family.name}_count", labels, _times(each, seen))


def _times(share: float, seen: Callable[[float], float]) -> Callable[[float], float]:
    return lambda at: share * seen(at)


def _gauge(family: Family, labels: Mapping[str, str], start: float) -> Callable[[float], float | None]:
    """A level: constant or in waves, a time, or a state; absent before its revision is."""
    first = RELEASE if labels.get("template_revision") == "r42" else 0
    level = _LEVELS.get(family.id, 1.0)
    if family.id in _WAVING and labels["instance"] == PODS[1]:
        level *= 0.9
    forms: dict[str, Callable[[float], float]] = {
        "release_first_traffic_timestamp_seconds": lambda _: start + first,
        "last_success_timestamp_seconds": lambda at: start + at - 3 - 2 * math.sin(at / 500),
        "map_state": lambda _: float(labels["state"] == "verified"),
        **dict.fromkeys(_WAVING, lambda at: level * (1 + 0.25 * math.sin(at / 700)) if at < BUSY else 0.0),
    }
    stamps = family.id.endswith("timestamp_seconds")
    value = forms.get(family.id, lambda at: start + min(at, BUSY) - 7 - 5 * math.sin(at / 900) if stamps else level)
    return lambda at: value(at) if at >= first else None
