"""The shipped rules under promtool: syntax, and every alert's own test file."""

from __future__ import annotations

import subprocess

import pytest

from support.promtool import ALERTS, PROMTOOL, needed, read_yaml, rule_groups, run_tests, write_rules, write_test

pytestmark = pytest.mark.prometheus
TESTS = sorted((ALERTS / "tests").glob("*.yaml"))


def test_promtool_accepts_every_rule_file():
    files = sorted(map(str, ALERTS.glob("*.rules.yaml")))
    done = subprocess.run(
        [PROMTOOL, "check", "rules", "--lint=all", "--lint-fatal", *files], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Each test file over the rules that its alert reads: what else is evaluated can only cost time."""
    folder = tmp_path_factory.mktemp("promtool")
    files = []
    for path in TESTS:
        test = read_yaml(path)
        groups = needed(
            rule_groups((ALERTS / "tests" / name).resolve() for name in test["rule_files"]),
            path.stem,
            with_annotations=True,
        )
        rules = write_rules(folder / f"{path.stem}.rules.yaml", groups)
        files.append(write_test(folder / path.name, rules, test, groups, with_annotations=True))
    return dict(zip((path.stem for path in TESTS), run_tests(files), strict=True))


@pytest.mark.parametrize("name", [path.stem for path in TESTS])
def test_alert(outcomes, name):
    ok, output = outcomes[name]
    assert ok, output


def test_a_test_file_runs_by_itself_as_its_reader_would_run_it():
    (outcome,) = run_tests([ALERTS / "tests" / "PrefixCacheReleaseDrift.yaml"])
    assert outcome[0], outcome[1]
