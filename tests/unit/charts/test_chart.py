"""The chart lints, renders, and carries the definitions the models generate."""

import pathlib
from typing import Any

import click
import helm_python
import kubernetes_validate
import pytest
import yaml

from modelserve.api import crd
from modelserve.cli import gateway, operator
from servelab.cli import emulator

CHART = pathlib.Path(__file__).parents[3] / "charts" / "modelserve"
CRDS = pathlib.Path(__file__).parents[3] / "crds"


def render(**values: Any) -> list[dict[str, Any]]:
    """All manifests of the chart with these values."""
    with helm_python.Chart.load(str(CHART)) as chart:
        files = chart.render(values, name="modelserve", namespace="modelserve-system")
    texts = [text for path, text in files.items() if path.endswith(".yaml")]
    return [m for text in texts for m in yaml.safe_load_all(text) if m]


def notes(**values: Any) -> str:
    """What Helm prints after an installation with these values."""
    with helm_python.Chart.load(str(CHART)) as chart:
        files = chart.render(values, name="modelserve", namespace="modelserve-system")
    return str(files["modelserve/templates/NOTES.txt"])


def test_the_chart_lints() -> None:
    report = helm_python.lint(str(CHART), strict=True)
    assert report["errors"] == []


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({}, id="defaults"),
        pytest.param({"emulator": {"enabled": False}}, id="no emulator"),
        pytest.param({"workloads": {"enabled": False}, "namespace": {"create": True}}, id="rules"),
    ],
)
def test_every_manifest_is_valid_for_kubernetes(values: dict[str, Any]) -> None:
    for manifest in render(**values):
        kubernetes_validate.validate(manifest, "1.37", strict=True)


def test_without_workloads_only_definitions_accounts_and_rules_remain() -> None:
    kinds = {m["kind"] for m in render(workloads={"enabled": False})}
    assert not kinds & {"Deployment", "Service", "Secret"}


def test_no_rule_has_a_wildcard() -> None:
    rules = [r for m in render() if m["kind"].endswith("Role") for r in m["rules"]]
    assert rules
    assert not [r for r in rules if "*" in r["verbs"] + r["resources"] + r["apiGroups"]]


@pytest.mark.parametrize("folder", [CRDS, CHART / "files" / "crds"], ids=["crds", "chart"])
def test_the_committed_definitions_are_the_generated_ones(folder: pathlib.Path) -> None:
    committed = {path.name: path.read_text() for path in folder.glob("*.yaml")}
    assert committed == crd.documents()


@pytest.mark.parametrize(
    ("values", "named"),
    [
        pytest.param({"timeScale": 0}, "timeScale", id="no time"),
        pytest.param({"timeScale": 1e6}, "timeScale", id="faster than our commands take"),
        pytest.param({"timescale": 20}, "timescale", id="a key that there is not"),
        pytest.param({"emulator": {"workrs": 2}}, "workrs", id="one of a section"),
        pytest.param({"emulator": {"workers": 999}}, "workers", id="too many"),
        pytest.param({"operator": {"replicas": 2}}, "replicas", id="what the operator has not"),
        pytest.param({"gateway": {"resources": "much"}}, "resources", id="no mapping"),
        pytest.param({"emulator": None}, "emulator", id="a section taken out"),
    ],
)
def test_an_odd_value_is_refused_by_name(values: dict[str, Any], named: str) -> None:
    with pytest.raises(helm_python.HelmValuesError, match=named):
        render(**values)


def test_the_gateways_two_ports_cannot_be_the_same() -> None:
    with pytest.raises(helm_python.HelmRenderError, match=r"gateway\.port 9090"):
        render(gateway={"port": 9090})


def test_values_of_a_parent_chart_are_no_unknown_ones() -> None:
    assert render(**{"global": {"registry": "example.org"}})


@pytest.mark.parametrize(
    ("values", "absent"),
    [
        pytest.param({"emulator": {"enabled": False}}, "gpu-pool", id="no emulator"),
        pytest.param({"workloads": {"enabled": False}}, "port-forward", id="no processes"),
    ],
)
def test_the_notes_name_nothing_that_was_left_out(values: dict[str, Any], absent: str) -> None:
    assert absent in notes()
    assert absent not in notes(**values)


COMMANDS: dict[str, click.Command] = {
    "modelserve operator": operator.operator,
    "modelserve gateway": gateway.gateway,
    "servelab emulator": emulator.emulator,
}


def test_every_process_takes_the_arguments_that_the_chart_gives_it(tmp_path: pathlib.Path) -> None:
    token = tmp_path / "token"
    token.write_text("t")
    containers = [
        m["spec"]["template"]["spec"]["containers"][0]
        for m in render()
        if m["kind"] == "Deployment"
    ]
    assert {" ".join(c["command"]) for c in containers} == set(COMMANDS)
    for container in containers:
        given = [
            word.replace("$(POD_IP)", "10.1.2.3").replace("/etc/modelserve/token", str(token))
            for word in container["args"]
        ]
        COMMANDS[" ".join(container["command"])].make_context("process", given)


@pytest.mark.parametrize(("replicas", "named"), [(1, False), (3, True)])
def test_several_emulators_share_the_nodes_under_their_pods_names(
    replicas: int, named: bool
) -> None:
    found = next(
        manifest
        for manifest in render(emulator={"replicas": replicas})
        if manifest["kind"] == "Deployment"
        and manifest["metadata"]["name"] == "modelserve-emulator"
    )
    container = found["spec"]["template"]["spec"]["containers"][0]
    assert found["spec"]["replicas"] == replicas
    assert ("--shard=$(POD_NAME)" in container["args"]) is named
    assert ("POD_NAME" in [entry["name"] for entry in container["env"]]) is named
