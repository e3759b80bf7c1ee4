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


def test_an_odd_value_is_refused_by_name() -> None:
    with pytest.raises(helm_python.HelmValuesError, match="timeScale"):
        render(timeScale=0)


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
