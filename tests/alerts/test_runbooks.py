"""Every alert leads to a runbook and to a test; every link in them leads somewhere; every command exists."""

from __future__ import annotations

import re
import shlex

import pytest
import yaml

from prefix_cache_exporter import cli
from prefix_cache_exporter.config.model import DEFAULT_PORT
from prefix_cache_exporter.pack.alerts import dashboards
from prefix_cache_exporter.pack.model import Alert
from prefix_cache_exporter.pack.rules import rule_groups
from prefix_cache_exporter.pack.settings import default_settings
from support.promtool import ALERTS, ROOT

NAMES = sorted(
    {
        rule.name
        for file in rule_groups(default_settings()).values()
        for group in file
        for rule in group.rules
        if isinstance(rule, Alert)
    }
)
HEADINGS = [
    "What it means",
    "Why it matters",
    "First three commands",
    "Likely causes, in order",
    "False positives",
    "How to tune",
]
LINK = re.compile(r"\[[^\]]*\]\(([^)]+)\)")


def anchors(path):
    headings = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


def test_the_nineteen_alerts():
    assert NAMES == [
        "PrefixCacheColdWindowExceeded",
        "PrefixCacheCollapsedAfterRelease",
        "PrefixCacheCoverageLow",
        "PrefixCacheDeadBelowBlockSize",
        "PrefixCacheDroppedWithoutRelease",
        "PrefixCacheEligibleNotReused",
        "PrefixCacheEngineVersionUnverified",
        "PrefixCacheEvictionPressure",
        "PrefixCacheEvidenceDisagrees",
        "PrefixCacheExporterAbsent",
        "PrefixCacheInputCostOverBudget",
        "PrefixCacheMetricMapMismatch",
        "PrefixCacheNoLatencyGain",
        "PrefixCachePrefixFragmented",
        "PrefixCacheRecordsQuarantined",
        "PrefixCacheReleaseDrift",
        "PrefixCacheUsageLogStalled",
        "PrefixCacheWeakHashSharedAcrossNamespaces",
        "PrefixCacheWritesNotPaidBack",
    ]


def test_no_runbook_or_test_is_left_over():
    assert sorted(path.stem for path in (ALERTS / "runbooks").iterdir()) == NAMES
    assert sorted(path.stem for path in (ALERTS / "tests").iterdir()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_runbook(name):
    path = ALERTS / "runbooks" / f"{name}.md"
    text = path.read_text()
    assert re.findall(r"^# (.+)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE) == [name]
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == HEADINGS
    for target in LINK.findall(text):
        file, _, anchor = target.partition("#")
        linked = path.parent / file
        assert linked.is_file(), target
        assert not anchor or anchor in anchors(linked), target


@pytest.mark.parametrize("name", NAMES)
def test_its_three_commands_are_ones_that_this_project_has(name):
    (block,) = re.findall(r"```sh\n(.*?)```", (ALERTS / "runbooks" / f"{name}.md").read_text(), re.DOTALL)
    commands = [line for line in block.splitlines() if not line.startswith("#")]
    assert len(commands) == 3
    own = [command for command in commands if command.startswith("prefix-cache-exporter ")]
    for command in own:
        cli.parser().parse_args(shlex.split(command.split(" | ")[0])[1:])
    assert own or all(f"localhost:{DEFAULT_PORT}" in command for command in commands)


@pytest.mark.parametrize("name", NAMES)
def test_its_test_has_a_firing_and_a_silent_check_and_ends_no_series_early(name):
    cases = yaml.safe_load((ALERTS / "tests" / f"{name}.yaml").read_text())["tests"]
    checks = [check for case in cases for check in case["alert_rule_test"]]
    assert any(check["exp_alerts"] for check in checks)
    assert any(not check["exp_alerts"] for check in checks)
    for alert in (alert for check in checks for alert in check["exp_alerts"]):
        assert sorted(alert["exp_annotations"]) == ["dashboard_url", "description", "runbook_url", "summary"]


def test_links_of_alerts_lead_to_runbooks_and_dashboards_of_this_project():
    uids = {value for key, value in vars(dashboards).items() if key.isupper()}
    for file in ALERTS.glob("*-alerts.rules.yaml"):
        for group in yaml.safe_load(file.read_text())["groups"]:
            for rule in group["rules"]:
                annotations = rule["annotations"]
                assert (ROOT / annotations["runbook_url"]).stem == rule["alert"]
                assert (ROOT / annotations["runbook_url"]).is_file()
                assert annotations["dashboard_url"].split("?")[0].removeprefix("/d/") in uids


def test_only_a_collapse_pages():
    critical = {
        rule["alert"]
        for file in ALERTS.glob("*-alerts.rules.yaml")
        for group in yaml.safe_load(file.read_text())["groups"]
        for rule in group["rules"]
        if rule["labels"]["severity"] == "critical"
    }
    assert critical == {"PrefixCacheCollapsedAfterRelease"}


def test_the_readme_lists_every_alert_as_it_is():
    text = (ALERTS / "README.md").read_text()
    for file in ALERTS.glob("*-alerts.rules.yaml"):
        for group in yaml.safe_load(file.read_text())["groups"]:
            for rule in group["rules"]:
                severity, summary = rule["labels"]["severity"], rule["annotations"]["summary"]
                assert f"| [{rule['alert']}](runbooks/{rule['alert']}.md) | {severity} | {summary} |" in text
    for target in LINK.findall(text):
        assert (ALERTS / target).exists(), target
