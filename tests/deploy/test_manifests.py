from __future__ import annotations

import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from kubernetes_validate import validate

from prefix_cache_exporter.config.load import load_config
from prefix_cache_exporter.pack.settings import default_settings

ROOT = Path(__file__).parents[2]
MANIFESTS = ROOT / "deploy" / "manifests"
OURS = "monitoring.coreos.com/v1"
KUBERNETES = "1.33"


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


@cache
def rendered() -> list[dict[str, Any]]:
    done = subprocess.run(
        [ROOT / ".venv/bin/kubectl", "kustomize", MANIFESTS], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def of_kind(kind: str) -> list[dict[str, Any]]:
    return [document for document in rendered() if document["kind"] == kind]


def pod() -> dict[str, Any]:
    (deployment,) = of_kind("Deployment")
    spec: dict[str, Any] = deployment["spec"]["template"]
    return spec


def sidecar() -> dict[str, Any]:
    (container,) = pod()["spec"]["initContainers"]
    found: dict[str, Any] = container
    return found


def closed(schema: Any) -> Any:
    """The same schema with unknown fields refused, as an API server with strict field validation would."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    shut = {key: closed(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and "additionalProperties" not in schema:
        shut["additionalProperties"] = False
    return shut


def custom_resource_errors(document: dict[str, Any]) -> list[str]:
    file = {"PodMonitor": "podmonitors.json", "PrometheusRule": "prometheusrules.json"}[document["kind"]]
    schema = closed(json.loads((Path(__file__).parent / "crd" / file).read_text())["schema"])
    schema["properties"]["metadata"] = {"type": "object"}  # the API server's own business
    return [f"{error.json_path}: {error.message}" for error in Draft202012Validator(schema).iter_errors(document)]


def test_every_kind_that_the_plain_way_needs_is_there() -> None:
    assert {document["kind"] for document in rendered()} == {
        "ConfigMap",
        "Deployment",
        "NetworkPolicy",
        "PodMonitor",
        "PrometheusRule",
        "Service",
    }


def test_the_kubernetes_schemas_accept_every_field() -> None:
    for document in rendered():
        if document["apiVersion"] != OURS:
            validate(document, KUBERNETES, strict=True)


@pytest.mark.parametrize("kind", ["PodMonitor", "PrometheusRule"])
def test_the_operators_schemas_accept_every_field(kind: str) -> None:
    (document,) = of_kind(kind)
    assert custom_resource_errors(document) == []


def test_the_closed_schemas_refuse_a_typo() -> None:
    (monitor,) = of_kind("PodMonitor")
    broken = json.loads(json.dumps(monitor))
    broken["spec"]["podMetricsEndpoints"][0]["intervall"] = "15s"
    (error,) = custom_resource_errors(broken)
    assert "intervall" in error


def test_promtool_accepts_the_rules_inside_the_prometheusrule(tmp_path: Path) -> None:
    (rule,) = of_kind("PrometheusRule")
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rule["spec"]))
    done = subprocess.run(
        ["promtool", "check", "rules", tmp_path / "rules.yaml"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "SUCCESS" in done.stdout


def test_the_rules_are_those_that_ship_as_files() -> None:
    (rule,) = of_kind("PrometheusRule")
    shipped = [yaml.safe_load(path.read_text()) for path in sorted((ROOT / "alerts").glob("*.rules.yaml"))]
    assert rule["spec"]["groups"] == [group for file in shipped for group in file["groups"]]


def test_configmaps_stay_below_a_mebibyte() -> None:
    for document in of_kind("ConfigMap"):
        assert len(json.dumps(document)) < 1 << 20, document["metadata"]["name"]


def test_dashboards_carry_the_grafana_sidecars_label_and_folder() -> None:
    boards = [
        document for document in of_kind("ConfigMap") if "grafana_dashboard" in document["metadata"].get("labels", {})
    ]
    shipped = sorted(path.name for path in (ROOT / "dashboards").glob("*.json"))
    assert sorted(name for board in boards for name in board["data"]) == shipped
    for board in boards:
        assert board["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert board["metadata"]["annotations"]["grafana_folder"]


def test_the_exporter_is_a_native_sidecar_that_cannot_take_the_server_out_of_rotation() -> None:
    assert sidecar()["restartPolicy"] == "Always"
    assert "readinessProbe" not in sidecar()
    assert "startupProbe" not in sidecar()  # it would hold the server back


def test_the_exporter_runs_with_nothing_it_does_not_need() -> None:
    assert pod()["spec"]["securityContext"]["runAsNonRoot"] is True
    assert sidecar()["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    writable = [mount["name"] for mount in sidecar()["volumeMounts"] if not mount.get("readOnly")]
    assert writable == ["state"]


def test_the_grace_of_the_pod_outlasts_the_drain_of_the_exporter() -> None:
    config = load_config(MANIFESTS / "config.yaml")
    assert pod()["spec"]["terminationGracePeriodSeconds"] > config.shutdown.grace_seconds


def test_the_configuration_names_only_folders_that_are_mounted() -> None:
    config = load_config(MANIFESTS / "config.yaml")
    mounts = tuple(mount["mountPath"] + "/" for mount in sidecar()["volumeMounts"])
    named = [config.state.path, *(path for source in config.usage for path in source.paths)]
    named += [source.release.file for source in (*config.engines, *config.usage) if source.release is not None]
    assert len(named) == 4
    assert all(str(path).startswith(mounts) for path in named)


def test_the_job_is_the_one_that_rules_and_dashboards_look_for() -> None:
    (monitor,) = of_kind("PodMonitor")
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert [rule["replacement"] for rule in endpoint["relabelings"] if rule["targetLabel"] == "job"] == [
        default_settings().job
    ]


def test_prometheus_may_come_in_and_only_name_lookups_go_out() -> None:
    (policy,) = of_kind("NetworkPolicy")
    spec = policy["spec"]
    assert sorted(spec["policyTypes"]) == ["Egress", "Ingress"]
    assert spec["podSelector"]["matchLabels"].items() <= pod()["metadata"]["labels"].items()
    (scrapers,) = [rule for rule in spec["ingress"] if rule["ports"][0]["port"] == sidecar()["ports"][0]["name"]]
    assert "namespaceSelector" in scrapers["from"][0]
    assert {port["port"] for rule in spec["egress"] for port in rule["ports"]} == {53}


def test_a_server_without_a_name_in_passwd_has_a_home_that_it_may_write_to() -> None:
    (server,) = pod()["spec"]["containers"]
    (home,) = [entry["value"] for entry in server["env"] if entry["name"] == "HOME"]
    assert [mount for mount in server["volumeMounts"] if mount["mountPath"] == home and not mount.get("readOnly")]


def test_the_podmonitor_scrapes_the_port_that_the_exporter_listens_on() -> None:
    (monitor,) = of_kind("PodMonitor")
    (port,) = sidecar()["ports"]
    assert monitor["spec"]["podMetricsEndpoints"][0]["port"] == port["name"]
    assert load_config(MANIFESTS / "config.yaml").web.listen_address == (f":{port['containerPort']}",)
    assert monitor["spec"]["selector"]["matchLabels"].items() <= pod()["metadata"]["labels"].items()
