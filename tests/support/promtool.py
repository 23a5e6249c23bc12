"""Runs promtool over rule tests, two at a time."""

from __future__ import annotations

import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
ALERTS = ROOT / "alerts"
PROMTOOL = shutil.which("promtool") or "promtool"
RECORDED = re.compile(r"[a-z_]+:prefix_cache_[a-z_]+:[a-z0-9_]+")
PROCESSES = 2


@cache
def read_yaml(path):
    return yaml.load(Path(path).read_text(), Loader=yaml.CSafeLoader)


def run_tests(files):
    """Runs `promtool test rules` on each file; returns (ok, output) in the same order."""

    def run(file):
        done = subprocess.run([PROMTOOL, "test", "rules", str(file)], capture_output=True, text=True, check=False)
        return done.returncode == 0, done.stdout + done.stderr

    with ThreadPoolExecutor(PROCESSES) as pool:
        return list(pool.map(run, files))


def rule_groups(rule_files):
    """Groups of rule files by name, in the order of the files."""
    return {group["name"]: group for file in rule_files for group in read_yaml(file)["groups"]}


def needed(groups, alert, *, with_annotations):
    """The groups cut down to one alert and to the recording rules that it reads, directly or not."""
    records = {rule["record"]: rule for group in groups.values() for rule in group["rules"] if "record" in rule}
    wanted, queue = set(), []

    def read(rule):
        texts = [rule["expr"], *(rule.get("annotations", {}).values() if with_annotations else ())]
        queue.extend(name for text in texts for name in RECORDED.findall(text))

    for group in groups.values():
        for rule in group["rules"]:
            if rule.get("alert") == alert:
                read(rule)
    while queue:
        name = queue.pop()
        if name in records and name not in wanted:
            wanted.add(name)
            read(records[name])
    cut = {}
    for name, group in groups.items():
        rules = [rule for rule in group["rules"] if rule.get("alert") == alert or rule.get("record") in wanted]
        if rules:
            cut[name] = {**group, "rules": rules}
    return cut


def write_rules(path, groups):
    path.write_text(yaml.dump({"groups": list(groups.values())}, Dumper=yaml.CSafeDumper, sort_keys=False, width=10**6))
    return path


def write_test(path, rules, test, groups, *, with_annotations):
    """A test file over one rule file; without annotations, their expectations are taken out as well."""
    test = {
        **test,
        "rule_files": [str(rules)],
        "group_eval_order": [n for n in test["group_eval_order"] if n in groups],
    }
    if not with_annotations:
        test["tests"] = [
            {
                **case,
                "alert_rule_test": [
                    {**check, "exp_alerts": [{"exp_labels": alert["exp_labels"]} for alert in check["exp_alerts"]]}
                    for check in case["alert_rule_test"]
                ],
            }
            for case in test["tests"]
        ]
    path.write_text(yaml.dump(test, Dumper=yaml.CSafeDumper, sort_keys=False, width=10**6))
    return path
