"""Takes one thing out of an alert at a time: its promtool test must notice.

`mutations.yaml` lists what is taken out; a rule that can be changed unnoticed is a rule without a test.
"""

from __future__ import annotations

import copy
import re

import pytest

from support.promtool import ALERTS, needed, read_yaml, rule_groups, run_tests, write_rules, write_test

pytestmark = pytest.mark.prometheus
MUTATIONS = [
    pytest.param(name, mutation, id=f"{name}-{mutation['what']}")
    for name, mutations in read_yaml(ALERTS.parent / "tests/alerts/mutations.yaml").items()
    for mutation in mutations
]


def mutated(groups, alert, mutation):
    """The groups with one thing taken out, and how many rules that touched."""
    groups, touched = copy.deepcopy(groups), 0
    for group in groups.values():
        for rule in group["rules"]:
            name = rule.get("record", rule.get("alert"))
            here = re.search(mutation["in"], rule.get("record", "")) if "in" in mutation else name == alert
            if not here:
                continue
            if "for" in mutation:
                rule["for"], touched = mutation["for"], touched + 1
            elif mutation["replace"] in rule["expr"]:
                rule["expr"], touched = rule["expr"].replace(mutation["replace"], mutation["with"]), touched + 1
    return groups, touched


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mutations")
    files, touched = [], []
    for number, (name, mutation) in enumerate(param.values for param in MUTATIONS):
        test = read_yaml(ALERTS / "tests" / f"{name}.yaml")
        cases = [case for case in test["tests"] if mutation["caught_by"] in case["name"]]
        assert cases, f"{name}: {mutation['caught_by']} names no case"
        groups = rule_groups((ALERTS / "tests" / file).resolve() for file in test["rule_files"])
        groups = needed(groups, name, with_annotations=False)
        changed, count = mutated(groups, name, mutation)
        touched.append(count)
        test = {**test, "tests": cases}
        rules = write_rules(folder / f"{number}.rules.yaml", changed)
        files.append(write_test(folder / f"{number}.yaml", rules, test, changed, with_annotations=False))
    return dict(zip((param.id for param in MUTATIONS), zip(touched, run_tests(files), strict=True), strict=True))


@pytest.mark.parametrize(("name", "mutation"), MUTATIONS)
def test_a_mutation_is_noticed(outcomes, name, mutation):
    touched, (passed, output) = outcomes[f"{name}-{mutation['what']}"]
    assert touched, f"{mutation['replace']!r} stands in no rule"
    assert "parse error" not in output, output
    assert not passed, f"{name}: {mutation['what']} changed and no test failed"


def test_every_alert_is_mutated():
    assert {param.values[0] for param in MUTATIONS} == {path.stem for path in (ALERTS / "tests").glob("*.yaml")}
