"""The pods of the chart and what stands around them, by its values."""

import pathlib
import re
from collections.abc import Callable
from typing import Any

import click
import pytest

from modelserve.cli import gateway, operator
from servelab.cli import emulator

Manifest = dict[str, Any]
One = Callable[..., Manifest]
Render = Callable[..., list[Manifest]]
COMPONENTS = ("operator", "gateway", "emulator")
COMMANDS: dict[str, click.Command] = {
    "modelserve operator": operator.operator,
    "modelserve gateway": gateway.gateway,
    "servelab emulator": emulator.emulator,
}


def container(template: Manifest) -> Manifest:
    found: Manifest = template["spec"]["containers"][0]
    return found


@pytest.mark.parametrize("component", COMPONENTS)
@pytest.mark.parametrize("replicas", [1, 3])
def test_every_process_takes_the_arguments_that_the_chart_gives_it(
    component: str, replicas: int, pod: One, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "token").write_text("t")
    found = container(pod(component, **{component: {"replicas": replicas}}))
    known = {"POD_IP": "10.1.2.3", "POD_NAME": "emulator-1"}
    given = [re.sub(r"\$\((\w+)\)", lambda m: known[m[1]], word) for word in found["args"]]
    given = [word.replace("/etc/modelserve", str(tmp_path)) for word in given]
    COMMANDS[" ".join(found["command"])].make_context("process", given)
    named = {m for word in found["args"] for m in re.findall(r"\$\((\w+)\)", word)}
    assert named <= {entry["name"] for entry in found["env"]}


@pytest.mark.parametrize("component", COMPONENTS)
def test_every_pod_keeps_to_the_restricted_pod_security_standard(component: str, pod: One) -> None:
    security, ours = pod(component)["spec"]["securityContext"], container(pod(component))
    assert security["runAsNonRoot"]
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    assert ours["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


@pytest.mark.parametrize("component", COMPONENTS)
def test_every_probe_asks_a_port_that_the_container_has(component: str, pod: One) -> None:
    found = container(pod(component))
    ports = {port["name"] for port in found["ports"]}
    probes = [value["httpGet"] for key, value in found.items() if key.endswith("Probe")]
    assert len(probes) >= 2
    assert {probe["port"] for probe in probes} <= ports


@pytest.mark.parametrize("component", COMPONENTS)
def test_no_pod_of_ours_goes_to_an_emulated_node(component: str, pod: One) -> None:
    affinity = pod(component)["spec"]["affinity"]["nodeAffinity"]
    terms = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    barred = {"key": "emulator.modelserve.dev/virtual", "operator": "DoesNotExist"}
    assert all(barred in term["matchExpressions"] for term in terms)


def test_openshift_may_choose_the_user(pod: One) -> None:
    values = {"pods": {"securityContext": {"runAsUser": None}}}
    assert "runAsUser" not in pod("operator", **values)["spec"]["securityContext"]


def test_a_components_own_value_counts_before_that_of_all(pod: One) -> None:
    values = {
        "pods": {"nodeSelector": {"disk": "ssd"}, "priorityClassName": "low"},
        "gateway": {"priorityClassName": "high"},
    }
    chosen = {each: pod(each, **values)["spec"]["priorityClassName"] for each in COMPONENTS}
    assert chosen == {"operator": "low", "gateway": "high", "emulator": "low"}
    assert pod("gateway", **values)["spec"]["nodeSelector"] == {"disk": "ssd"}


def test_labels_of_ones_own_do_not_replace_what_selects_the_pods(one: One) -> None:
    taken = dict.fromkeys(("app.kubernetes.io/name", "app.kubernetes.io/component"), "other")
    values = {"pods": {"labels": {"team": "a", **taken}}}
    found = one("Deployment", "modelserve-gateway", **values)["spec"]
    labels = found["template"]["metadata"]["labels"]
    assert found["selector"]["matchLabels"].items() <= labels.items()
    assert labels["team"] == "a"


def test_pods_of_one_kind_spread_over_nodes(one: One) -> None:
    found = one("Deployment", "modelserve-gateway")["spec"]
    rule = found["template"]["spec"]["topologySpreadConstraints"][0]
    assert rule["labelSelector"]["matchLabels"] == found["selector"]["matchLabels"]


@pytest.mark.parametrize(("replicas", "named"), [(1, False), (3, True)])
def test_several_emulators_share_the_nodes_under_their_pods_names(
    replicas: int, named: bool, pod: One
) -> None:
    found = container(pod("emulator", emulator={"replicas": replicas}))
    assert ("--shard=$(POD_NAME)" in found["args"]) is named


def test_an_old_emulator_is_gone_before_a_new_one_plays_its_nodes(one: One) -> None:
    assert one("Deployment", "modelserve-emulator")["spec"]["strategy"]["type"] == "Recreate"


def test_a_gateway_gets_the_time_to_drain(pod: One) -> None:
    found = pod("gateway", gateway={"drainSeconds": 300})
    wait = container(found)["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert "--drain-seconds=300" in container(found)["args"]
    assert found["spec"]["terminationGracePeriodSeconds"] > 300 + wait


def test_a_digest_counts_before_the_tag(pod: One) -> None:
    digest = "sha256:" + "0" * 64
    found = pod("operator", image={"repository": "r/m", "tag": "1", "digest": digest})
    assert container(found)["image"] == f"r/m@{digest}"


@pytest.mark.parametrize("component", ["operator", "gateway"])
def test_the_token_comes_from_the_secret_that_is_named(component: str, pod: One) -> None:
    found = pod(component, token={"existingSecret": "mine", "key": "shared"})
    volumes = {volume["name"]: volume for volume in found["spec"]["volumes"]}
    assert volumes["token"]["secret"]["secretName"] == "mine"
    assert "--token-file=/etc/modelserve/shared" in container(found)["args"]


def test_no_secret_is_made_beside_the_one_that_is_named(render: Render) -> None:
    kinds = [m["kind"] for m in render(token={"existingSecret": "mine"})]
    assert "Secret" not in kinds
    assert "Secret" in [m["kind"] for m in render()]


@pytest.mark.parametrize(("replicas", "there"), [(1, False), (2, True)])
def test_gateways_are_evicted_one_by_one_where_there_are_several(
    replicas: int, there: bool, render: Render
) -> None:
    kinds = [m["kind"] for m in render(gateway={"replicas": replicas})]
    assert ("PodDisruptionBudget" in kinds) is there


def _ports(kind: str, manifests: list[Manifest]) -> set[str]:
    found = [m["spec"] for m in manifests if m["kind"] == kind]
    if kind == "Service":
        return {port["name"] for each in found for port in each["ports"]}
    return {endpoint["port"] for each in found for endpoint in each["endpoints"]}


def test_a_service_monitor_scrapes_all_ports_that_services_have(render: Render) -> None:
    manifests = render(metrics={"serviceMonitor": {"enabled": True, "labels": {"release": "p"}}})
    assert (
        _ports("ServiceMonitor", manifests) == _ports("Service", manifests) == {"http", "metrics"}
    )
    monitors = [m for m in manifests if m["kind"] == "ServiceMonitor"]
    assert {m["metadata"]["labels"]["release"] for m in monitors} == {"p"}


def test_network_policies_name_ports_that_the_pods_have(render: Render, pod: One) -> None:
    for found in render(networkPolicy={"enabled": True}):
        if found["kind"] == "NetworkPolicy":
            component = found["spec"]["podSelector"]["matchLabels"]["app.kubernetes.io/component"]
            there = {port["name"] for port in container(pod(component))["ports"]}
            rules = found["spec"]["ingress"]
            assert {port["port"] for rule in rules for port in rule.get("ports", [])} == there


def test_only_operator_and_gateways_reach_the_engines_past_a_network_policy(one: One) -> None:
    found = one("NetworkPolicy", "modelserve-emulator", networkPolicy={"enabled": True})
    (rule,) = [rule for rule in found["spec"]["ingress"] if "ports" not in rule]
    peers = [peer["podSelector"]["matchLabels"] for peer in rule["from"]]
    assert {peer["app.kubernetes.io/component"] for peer in peers} == {"operator", "gateway"}
