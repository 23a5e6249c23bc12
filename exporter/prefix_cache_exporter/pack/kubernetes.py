"""The rules as the Prometheus Operator takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .names import Names
from .rules import HEADER, as_yaml, group_data, rule_groups

if TYPE_CHECKING:
    from .settings import Settings


def manifest_files(settings: Settings) -> dict[str, str]:
    """A PrometheusRule with every group, in the order of the rule files."""
    names = Names(settings)
    groups = [group for _, of_file in sorted(rule_groups(settings).items()) for group in of_file]
    rule = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {
            "name": "prefix-cache-exporter",
            # kube-prometheus-stack selects by its Helm release; a patch in kustomization.yaml can put yours here.
            "labels": {"release": "kube-prometheus-stack"},
        },
        "spec": {"groups": [group_data(names, group) for group in groups]},
    }
    return {"prometheusrule.yaml": HEADER + as_yaml(rule)}
