"""pack.yaml: everything that a user may want different in rules, alerts and dashboards, each with a default.

The defaults stand once, in the schema, which documents them; nothing here repeats one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from prefix_cache_exporter.documents import all_errors, load_yaml, read_schema
from prefix_cache_exporter.mistakes import refuse

from . import mistakes
from .durations import Duration

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Severity = Literal["critical", "warning", "info"]
SCHEMA = "pack"


@dataclass(frozen=True, slots=True)
class Windows:
    """What "now", "slow or rare" and "a day" mean."""

    short: Duration
    long: Duration
    day: Duration


@dataclass(frozen=True, slots=True)
class Labels:
    """Target labels that rules keep, and labels that alerts carry."""

    extra: tuple[str, ...]
    alerts: dict[str, str]


@dataclass(frozen=True, slots=True)
class ReleaseSettings:
    """How a release is told from a change of traffic."""

    cold_window: Duration
    memory: Duration
    window: Duration
    rollout: Duration
    ramp: float


@dataclass(frozen=True, slots=True)
class Floors:
    """Traffic below which nothing is judged."""

    prompt_tokens: float
    eligible_tokens: float
    requests: float
    band_requests: float
    fingerprint_requests: float
    records: float
    baseline_ratio: float
    baseline_time: Duration


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Where the line is; shares are 0 to 1."""

    collapsed: float
    warm: float
    dropped: float
    eligible_dropped: float
    stable: float
    kv_usage: float
    engines_full: float
    preempted: float
    idle_shrunk: float
    fragmented: float
    disagreement: float
    coverage: float
    net_input_cost: float
    hits_up: float
    latency_gain: float
    quarantined: float
    exporters_down: float
    log_stalled: Duration
    exporters_gone: Duration


@dataclass(frozen=True, slots=True)
class Budget:
    """What the input of one request may cost, in one currency."""

    currency: str
    input_cost_per_request: float
    templates: dict[str, float]


@dataclass(frozen=True, slots=True)
class Trust:
    """What makes shared caching between namespaces risky."""

    weak_hash: str


@dataclass(frozen=True, slots=True)
class Links:
    """Where links in alerts lead."""

    runbooks: str
    grafana: str


class AlertChange(msgspec.Struct, frozen=True, rename={"for_": "for"}):
    """What a user changes about one alert; None leaves the alert's own value."""

    enabled: bool = True
    for_: Duration | None = None
    keep_firing_for: Duration | None = None
    severity: Severity | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """One pack file with every default filled in."""

    job: str
    selector: str
    interval: Duration
    windows: Windows
    labels: Labels
    namespaces: bool
    release: ReleaseSettings
    floors: Floors
    thresholds: Thresholds
    budget: Budget
    trust: Trust
    evidence_join: tuple[str, ...]
    alerts: dict[str, AlertChange]
    links: Links


def default_settings() -> Settings:
    """The settings that the shipped rules are generated with."""
    return read_settings({}, "defaults")


def load_settings(path: Path | str) -> Settings:
    """Reads a pack file.

    Raises:
        DocumentError: for all mistakes in it.
    """
    return read_settings(load_yaml(path) or {}, str(path))


def read_settings(data: Any, file: str) -> Settings:
    """Turns a pack file's content into settings; `file` only names it in errors.

    Raises:
        DocumentError: for all mistakes.
    """
    schema = read_schema(SCHEMA)
    refuse([*all_errors(data, schema, file), *mistakes.no_numbers(data, file)], data)
    settings: Settings = msgspec.convert(_filled(data, schema), Settings, dec_hook=_decode)
    refuse(mistakes.contradictions(settings, file), data)
    return settings


def _filled(data: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    filled = dict(data)
    for key, part in schema["properties"].items():
        value = filled.setdefault(key, part["default"])
        if "properties" in part:
            filled[key] = _filled(value, part)
    return filled


def _decode(kind: type, value: Any) -> Any:
    return kind.parse(value) if issubclass(kind, Duration) else value
