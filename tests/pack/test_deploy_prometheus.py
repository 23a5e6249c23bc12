"""The Prometheus configurations for fleets: valid, and what they keep is what the rules record."""

from __future__ import annotations

import re
import subprocess

import pytest
import yaml

from prefix_cache_exporter.measures import FAMILIES
from prefix_cache_exporter.pack.model import Record
from prefix_cache_exporter.pack.rules import rule_groups
from prefix_cache_exporter.pack.settings import default_settings
from support.promtool import PROMTOOL, ROOT

FOLDER = ROOT / "deploy/prometheus"


def kept(file):
    """The names that a configuration's remote write keeps."""
    (target,) = yaml.safe_load((FOLDER / file).read_text())["remote_write"]
    (rule,) = target["write_relabel_configs"]
    assert (rule["source_labels"], rule["action"]) == (["__name__"], "keep")
    return re.compile(rule["regex"])


@pytest.mark.prometheus
@pytest.mark.parametrize(("file", "flags"), [("prometheus.yml", ()), ("leaf.yml", ()), ("agent.yml", ("--agent",))])
def test_promtool_accepts_it(tmp_path, file, flags):
    # Debian builds Prometheus without Kubernetes discovery: a host replaces pods, all else is checked as it stands.
    config = yaml.safe_load((FOLDER / file).read_text())
    for scrape in config["scrape_configs"]:
        assert scrape.pop("kubernetes_sd_configs") == [{"role": "pod"}]
        scrape["static_configs"] = [{"targets": ["pod:10910"]}]
    path = tmp_path / file
    path.write_text(yaml.safe_dump(config))
    command = [PROMTOOL, "check", "config", "--syntax-only", *flags, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_leaf_sends_every_recorded_series_and_none_of_a_pod():
    recorded = {
        rule.series.name
        for file in rule_groups(default_settings()).values()
        for group in file
        for rule in group.rules
        if isinstance(rule, Record)
    }
    keep = kept("leaf.yml")
    assert all(map(keep.fullmatch, recorded))
    assert not any(keep.fullmatch(family.series_name) for family in FAMILIES.values())
    assert keep.pattern in (FOLDER / "README.md").read_text()


def test_an_agent_sends_what_rules_read():
    assert all(kept("agent.yml").fullmatch(name) for name in ("up", *(f.series_name for f in FAMILIES.values())))


def test_every_file_is_in_the_table():
    text = (FOLDER / "README.md").read_text()
    for file in FOLDER.glob("*.yml"):
        assert f"({file.name})" in text
