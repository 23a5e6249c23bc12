"""The Alertmanager example: valid, routed by severity, and consequences are inhibited by their cause."""

from __future__ import annotations

import shutil
import subprocess
from datetime import UTC, datetime, timedelta

import pytest
import requests

from support.process import wait_until
from support.programs import alertmanager
from support.promtool import ALERTS

pytestmark = pytest.mark.prometheus
EXAMPLE = ALERTS / "alertmanager.example.yml"
AMTOOL = shutil.which("amtool") or "amtool"
REVISION = {"source": "vllm", "model": "qwen", "template": "support", "template_revision": "r42"}
SOURCE = {"source": "vllm"}


def amtool(*arguments):
    done = subprocess.run([AMTOOL, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_amtool_accepts_it():
    assert "SUCCESS" in amtool("check-config", str(EXAMPLE))


@pytest.mark.parametrize(("severity", "receiver"), [("critical", "on-call"), ("warning", "team"), ("info", "log")])
def test_severity_decides_who_is_told(severity, receiver):
    labels = ("alertname=PrefixCacheCollapsedAfterRelease", f"severity={severity}")
    assert amtool("config", "routes", "test", f"--config.file={EXAMPLE}", *labels).split() == [receiver]


CASES = [
    ("PrefixCacheCollapsedAfterRelease", REVISION, "PrefixCacheColdWindowExceeded", REVISION, True),
    ("PrefixCacheCollapsedAfterRelease", REVISION, "PrefixCachePrefixFragmented", {**REVISION, "source": "gw"}, True),
    (
        "PrefixCacheCollapsedAfterRelease",
        REVISION,
        "PrefixCacheInputCostOverBudget",
        {**REVISION, "template_revision": "r41"},
        False,
    ),
    ("PrefixCacheCollapsedAfterRelease", REVISION, "PrefixCacheReleaseDrift", REVISION, False),
    ("PrefixCacheEvictionPressure", REVISION, "PrefixCacheDroppedWithoutRelease", REVISION, True),
    ("PrefixCacheMetricMapMismatch", SOURCE, "PrefixCacheEngineVersionUnverified", SOURCE, True),
    ("PrefixCacheMetricMapMismatch", SOURCE, "PrefixCacheEvidenceDisagrees", REVISION, True),
    ("PrefixCacheMetricMapMismatch", SOURCE, "PrefixCacheEvidenceDisagrees", {**REVISION, "source": "b"}, False),
    ("PrefixCacheExporterAbsent", {**SOURCE, "reason": "vanished"}, "PrefixCacheColdWindowExceeded", REVISION, True),
    (
        "PrefixCacheExporterAbsent",
        {**SOURCE, "reason": "vanished"},
        "PrefixCacheCollapsedAfterRelease",
        REVISION,
        False,
    ),
    ("PrefixCacheRecordsQuarantined", {**SOURCE, "reason": "lost"}, "PrefixCacheCoverageLow", REVISION, True),
    ("PrefixCacheExporterAbsent", {"job": "j", "reason": "down"}, "PrefixCacheColdWindowExceeded", REVISION, False),
    ("PrefixCacheWritesNotPaidBack", REVISION, "PrefixCacheInputCostOverBudget", REVISION, True),
    ("PrefixCacheDeadBelowBlockSize", REVISION, "PrefixCacheColdWindowExceeded", REVISION, True),
]


@pytest.fixture(scope="module")
def states(tmp_path_factory):
    """Each case's two alerts, kept apart from the others' by the model's and the source's name."""
    alerts, now = [], datetime.now(UTC)
    for number, (cause, cause_labels, consequence, labels, _) in enumerate(CASES):
        for role, name, own in (("cause", cause, cause_labels), ("consequence", consequence, labels)):
            apart = {key: f"{value}-{number}" if key in {"model", "source"} else value for key, value in own.items()}
            alerts.append(
                {
                    "labels": {"alertname": name, "case": str(number), "role": role, "severity": "warning", **apart},
                    "endsAt": (now + timedelta(hours=1)).isoformat(),
                }
            )
    with alertmanager(tmp_path_factory.mktemp("alertmanager"), EXAMPLE.read_text()) as server:
        requests.post(f"{server.url}/api/v2/alerts", json=alerts, timeout=10).raise_for_status()

        def known():
            listed = server.get("/api/v2/alerts")
            return {(one["labels"]["case"], one["labels"]["role"]): one["status"]["state"] for one in listed}

        # The states are worked out when alerts are routed; until then they are "unprocessed".
        wait_until(lambda: len(known()) == len(alerts) and "unprocessed" not in known().values(), 60)
        return known()


@pytest.mark.parametrize("number", range(len(CASES)))
def test_a_cause_inhibits_its_consequences_and_nothing_else(states, number):
    *_, inhibited = CASES[number]
    assert states[str(number), "cause"] == "active"
    assert states[str(number), "consequence"] == ("suppressed" if inhibited else "active")
