"""The files that the demo's programs read: what a person would write, with every interval shortened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from .plot import COLD_WINDOW_SECONDS
from .prompts import REVISIONS
from .traffic import NAMESPACES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from .prompts import Revision

USAGE_FORMAT = "demo.gateway"
JOB = "prefix-cache-exporter"
_BLOCK_SIZE = 16
_USAGE_MAP = {
    "format": USAGE_FORMAT,
    "extends": "vllm.chat",
    "title": "The demo's gateway: vLLM's chat completions, and how long they took",
    "ttft": [{"path": "$.ttft_seconds", "unit": "s"}],
    "duration": [{"path": "$.duration_seconds", "unit": "s"}],
}
_FIELDS = ("template", "template_revision", "namespace", "task", "leading_fingerprint")
_PACK = {
    "job": JOB,
    "interval": "1s",
    "windows": {"short": "8s", "long": "20s", "day": "1m"},
    "release": {"cold_window": "15s", "memory": "10m", "window": "30s", "rollout": "20s", "ramp": 100},
    "floors": {
        "prompt_tokens": 1_000,
        "eligible_tokens": 1_000,
        "requests": 10,
        "band_requests": 5,
        "fingerprint_requests": 10,
        "baseline_time": "5s",
    },
    # The server and its gateway are two sources, and the same traffic.
    "evidence_join": ["model", "template", "template_revision"],
}
_HOLD = {"for": "4s", "keep_firing_for": "4s"}
_PATIENT = {
    "PrefixCacheExporterAbsent": {"for": "20s"},
    "PrefixCacheDroppedWithoutRelease": {"for": "12s"},
    "PrefixCacheEvidenceDisagrees": {"for": "15s"},
}
"""Alerts that a start, a cold window, or counting at the first token here and at the last one there would set off in
windows this short, if they waited no longer than the others."""


def sources(template: str) -> dict[str, str]:
    """Names of a template's sources by plane: its server, and the gateway in front of it."""
    return {"engine": f"{template}-vllm", "usage": f"{template}-gateway"}


def usage_log(folder: Path, template: str) -> Path:
    """Where the gateway of a template writes."""
    return folder / f"{template}.jsonl"


def release_file(folder: Path, template: str) -> Path:
    """The release file of a template, as a ConfigMap would be mounted."""
    return folder / f"release-{template}.yaml"


def write_release(folder: Path, revision: Revision) -> None:
    """Puts a revision in force: the file is replaced as a whole, never half written."""
    releases = [
        {
            "template": known.template,
            "template_revision": known.name,
            "cold_window_seconds": COLD_WINDOW_SECONDS,
            "in_force": known is revision,
        }
        for known in REVISIONS
        if known.template == revision.template
    ]
    path = release_file(folder, revision.template)
    fresh = path.with_suffix(".new")
    fresh.write_text(_text({"releases": releases}), "utf-8")
    fresh.replace(path)


def write_sidecar(folder: Path, servers: Mapping[str, str], listen: str) -> Path:
    """The exporter's configuration, with the map, the inventory and the release files that it names.

    Args:
        folder: where everything goes.
        servers: address of the vLLM server by template.
        listen: where the exporter listens.
    """
    maps = folder / "maps" / "usage"
    maps.mkdir(parents=True, exist_ok=True)
    (maps / f"{USAGE_FORMAT}.yaml").write_text(_text(_USAGE_MAP), "utf-8")
    (folder / "inventory.yaml").write_text(_text(_inventory()), "utf-8")
    path = folder / "sidecar.yaml"
    path.write_text(
        _text(
            {
                "web": {"listen_address": [listen]},
                "state": {"hold_seconds": 3, "commit_seconds": 0.5},
                "engines": [_engine(folder, template, address) for template, address in servers.items()],
                "usage": [_usage(folder, template) for template in servers],
                "maps": {"folders": [str(folder / "maps")]},
                "inventory": {"file": str(folder / "inventory.yaml")},
            }
        ),
        "utf-8",
    )
    return path


def write_pack(folder: Path, alerts: list[str]) -> Path:
    """The pack file that shortens every interval of rules and alerts."""
    path = folder / "pack.yaml"
    path.write_text(_text(_PACK | {"alerts": {name: _HOLD | _PATIENT.get(name, {}) for name in alerts}}), "utf-8")
    return path


def write_prometheus(folder: Path, exporter: str, rules: Path, alertmanager: str | None) -> Path:
    """Prometheus' configuration.

    Args:
        folder: where it goes.
        exporter: address of the exporter.
        rules: folder of the rule files.
        alertmanager: address of Alertmanager, where there is one.
    """
    config: dict[str, Any] = {
        "global": {"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "1s"},
        "rule_files": [f"{rules}/*.yaml"],
        "scrape_configs": [{"job_name": JOB, "static_configs": [{"targets": [exporter]}]}],
    }
    if alertmanager:
        config["alerting"] = {"alertmanagers": [{"static_configs": [{"targets": [alertmanager]}]}]}
    path = folder / "prometheus.yml"
    path.write_text(_text(config), "utf-8")
    return path


def write_alertmanager(folder: Path, pager: str) -> Path:
    """Alertmanager's configuration: critical alerts go to a pager, others wait for office hours."""
    path = folder / "alertmanager.yml"
    path.write_text(
        _text(
            {
                "route": {
                    "receiver": "tickets",
                    "group_by": ["alertname", "source", "template"],
                    "group_wait": "1s",
                    "group_interval": "1s",
                    "repeat_interval": "1h",
                    "routes": [{"matchers": ['severity="critical"'], "receiver": "pager"}],
                },
                "receivers": [
                    {"name": "tickets"},
                    {"name": "pager", "webhook_configs": [{"url": pager, "send_resolved": True}]},
                ],
            }
        ),
        "utf-8",
    )
    return path


def _engine(folder: Path, template: str, address: str) -> dict[str, Any]:
    return {
        "name": sources(template)["engine"],
        "url": address,
        "poll_seconds": 1,
        "timeout_seconds": 3,
        "release": {"file": str(release_file(folder, template))},
    }


def _usage(folder: Path, template: str) -> dict[str, Any]:
    return {
        "name": sources(template)["usage"],
        "format": USAGE_FORMAT,
        "paths": [str(usage_log(folder, template))],
        "settle_seconds": 1,
        "fields": {field: f"$.metadata.{field}" for field in _FIELDS},
        "namespaces": {"allow": [*NAMESPACES]},
        "fingerprint_window_seconds": 20,
        "block_size_tokens": _BLOCK_SIZE,
        "release": {"file": str(release_file(folder, template))},
    }


def _inventory() -> dict[str, Any]:
    """What each template is meant to share, whatever a revision then does to it."""
    segments = [
        {
            "id": f"{revision.template}-instructions",
            "version": revision.name,
            "owner": "demo",
            "scope": revision.template,
            "sharing_group": "tenant",
            "expected_update_frequency": "monthly",
            "tokens": revision.shared_tokens,
        }
        for revision in REVISIONS
    ]
    templates: dict[str, Any] = {}
    for revision in REVISIONS:
        prefix = {"shared_prefix": [f"{revision.template}-instructions@{revision.name}"]}
        templates.setdefault(revision.template, {"revisions": {}})["revisions"][revision.name] = prefix
    return {"segments": segments, "templates": templates}


def _text(data: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(data), sort_keys=False)
