"""The chart lints, renders, and carries the definitions the models generate."""

import pathlib
import re
from collections.abc import Callable
from typing import Any

import helm_python
import kubernetes_validate
import pydantic
import pytest
import yaml

from modelserve.api import crd, pool, spec

CRDS = pathlib.Path(__file__).parents[3] / "crds"
Render = Callable[..., list[dict[str, Any]]]
EVERYTHING = {
    "namespace": {"create": True},
    "imagePullSecrets": [{"name": "registry"}],
    "pods": {
        "annotations": {"a": "b"},
        "labels": {"team": "serving"},
        "env": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "infra", "operator": "Exists"}],
        "priorityClassName": "system-cluster-critical",
    },
    "operator": {"replicas": 2, "args": ["--workers=4"]},
    "gateway": {
        "replicas": 3,
        "service": {"type": "NodePort", "nodePort": 30080, "annotations": {"c": "d"}},
        "podDisruptionBudget": {"maxUnavailable": "50%"},
    },
    "emulator": {"replicas": 3, "checkReferences": True, "exec": False},
    "networkPolicy": {"enabled": True, "gatewayFrom": [{"podSelector": {}}]},
}


def test_the_chart_lints(chart: pathlib.Path) -> None:
    report = helm_python.lint(str(chart), strict=True)
    assert report["errors"] == []


@pytest.mark.parametrize("version", ["1.31", "1.37"])
@pytest.mark.parametrize(
    "values",
    [
        pytest.param({}, id="defaults"),
        pytest.param({"emulator": {"enabled": False}}, id="no emulator"),
        pytest.param({"workloads": {"enabled": False}, "namespace": {"create": True}}, id="rules"),
        pytest.param({"token": {"existingSecret": "mine"}}, id="a token of one's own"),
        pytest.param({"operator": {"resources": None}}, id="no resources"),
        pytest.param(EVERYTHING, id="everything"),
    ],
)
def test_every_manifest_is_valid_for_kubernetes(
    values: dict[str, Any], version: str, render: Render
) -> None:
    for manifest in render(**values):
        kubernetes_validate.validate(manifest, version, strict=True)


def test_the_values_for_kind_are_valid_ones(chart: pathlib.Path, render: Render) -> None:
    values = yaml.safe_load((chart / "ci" / "kind-values.yaml").read_text())
    for manifest in render(**values):
        kubernetes_validate.validate(manifest, "1.37", strict=True)


def test_without_workloads_only_definitions_accounts_and_rules_remain(render: Render) -> None:
    kinds = {m["kind"] for m in render(**EVERYTHING | {"workloads": {"enabled": False}})}
    assert not kinds & {"Deployment", "Service", "Secret", "NetworkPolicy", "PodDisruptionBudget"}


def test_no_rule_has_a_wildcard(render: Render) -> None:
    rules = [r for m in render() if m["kind"].endswith("Role") for r in m["rules"]]
    assert rules
    assert not [r for r in rules if "*" in r["verbs"] + r["resources"] + r["apiGroups"]]


@pytest.mark.parametrize("folder", ["crds", "chart"])
def test_the_committed_definitions_are_the_generated_ones(folder: str, chart: pathlib.Path) -> None:
    folders = {"crds": CRDS, "chart": chart / "files" / "crds"}
    committed = {path.name: path.read_text() for path in folders[folder].glob("*.yaml")}
    assert committed == crd.documents()


@pytest.mark.parametrize("keep", [True, False])
def test_helm_keeps_the_definitions_unless_told_otherwise(keep: bool, render: Render) -> None:
    found = [m for m in render(crds={"keep": keep}) if m["kind"] == "CustomResourceDefinition"]
    policies = {m["metadata"].get("annotations", {}).get("helm.sh/resource-policy") for m in found}
    assert (len(found), policies) == (2, {"keep" if keep else None})


@pytest.mark.parametrize(
    ("values", "named"),
    [
        pytest.param({"timeScale": 0}, "timeScale", id="no time"),
        pytest.param({"timeScale": 1e6}, "timeScale", id="faster than our commands take"),
        pytest.param({"timescale": 20}, "timescale", id="a key that there is not"),
        pytest.param({"emulator": {"workrs": 2}}, "workrs", id="one of a section"),
        pytest.param({"emulator": {"workers": 999}}, "workers", id="too many"),
        pytest.param({"operator": {"replicas": 0}}, "replicas", id="no operator"),
        pytest.param({"gateway": {"resources": "much"}}, "resources", id="no mapping"),
        pytest.param({"emulator": None}, "emulator", id="a section taken out"),
        pytest.param({"image": {"digest": "1234"}}, "digest", id="no digest"),
        pytest.param({"imagePullSecrets": ["registry"]}, "imagePullSecrets", id="names alone"),
        pytest.param({"pods": {"tolerations": [{"kee": "a"}]}}, "kee", id="a toleration's key"),
        pytest.param({"pods": {"annotations": {"a": 1}}}, "annotations", id="a number for a text"),
        pytest.param({"gateway": {"service": {"type": "Node"}}}, "type", id="no such Service"),
        pytest.param({"metrics": {"serviceMonitor": {"interval": "30"}}}, "interval", id="no unit"),
        pytest.param({"networkPolicy": {"metricsFrom": [{"pods": {}}]}}, "pods", id="no peer"),
        pytest.param({"emulator": {"nodeAddressType": "IP"}}, "nodeAddressType", id="no type"),
    ],
)
def test_an_odd_value_is_refused_by_name(
    values: dict[str, Any], named: str, render: Render
) -> None:
    with pytest.raises(helm_python.HelmValuesError, match=named):
        render(**values)


def test_the_gateways_two_ports_cannot_be_the_same(render: Render) -> None:
    with pytest.raises(helm_python.HelmRenderError, match=r"gateway\.port 9090"):
        render(gateway={"port": 9090})


def test_values_of_a_parent_chart_are_no_unknown_ones(render: Render) -> None:
    assert render(**{"global": {"registry": "example.org"}})


@pytest.mark.parametrize(
    ("values", "absent"),
    [
        pytest.param({"emulator": {"enabled": False}}, "GPUPool", id="no emulator"),
        pytest.param({"workloads": {"enabled": False}}, "port-forward", id="no processes"),
    ],
)
def test_the_notes_name_nothing_that_was_left_out(
    values: dict[str, Any], absent: str, notes: Callable[..., str]
) -> None:
    assert absent in notes()
    assert absent not in notes(**values)


def test_what_the_notes_have_applied_is_valid(notes: Callable[..., str]) -> None:
    pasted = re.findall(r"<<EOF\n(.*?)\nEOF\n", notes(), re.DOTALL)
    models: dict[str, type[pydantic.BaseModel]] = {
        "GPUPool": pool.GPUPoolSpec,
        "ModelServe": spec.ModelServeSpec,
    }
    found = {m["kind"]: m["spec"] for m in map(yaml.safe_load, pasted)}
    assert found.keys() == models.keys()
    for kind, body in found.items():
        models[kind].model_validate(body)


def test_the_notes_forward_to_the_port_that_the_service_has(notes: Callable[..., str]) -> None:
    assert "8080:81 " in notes(gateway={"service": {"port": 81}})
