"""The whole story with ordinary kubectl on a real API server: from zero to N and back."""

import concurrent.futures
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from servelab.cluster import local, workloads

pytestmark = pytest.mark.cluster

# A class in conftest.py, which no test can import by name.
Model = Any
Kubectl = Callable[..., "subprocess.CompletedProcess[str]"]
AWAKE = {"minReplicas": 0, "cooldownSeconds": 3600}
# A cold start that leaves time to kill somebody in the middle: some 15 real seconds at scale 60.
# After twice as long the replica is late, and replaced: whoever was killed is back by then.
SLOW = {"warmUpSeconds": 900}


@pytest.fixture(scope="module")
def awake(
    pool: str, model_of: type[Any], control_plane: local.LocalCluster, kubectl: Kubectl
) -> Iterator[Model]:
    """A model that a request has woken, and that stays awake."""
    kubectl("create", "namespace", "story")
    control_plane.control_plane.wait_for_service_account("story")
    made = model_of("story", "story", kubectl, control_plane.gateway_url)
    made.apply(scaling=AWAKE)
    status, body = made.chat()
    assert (status, body["usage"]["completion_tokens"]) == (200, 7)
    made.wait_for(".status.readyReplicas", 1)
    yield made
    kubectl("delete", "namespace", "story", "--wait=false")


def test_a_model_is_accepted_at_zero_with_its_children(model: Model) -> None:
    model.apply()
    assert (model.count(), model.pods()) == (0, [])
    assert model.get("service")["spec"]["clusterIP"] == "None"
    columns = model.run("get", "modelserves", "--no-headers").stdout.split()
    assert columns[:5] == [model.name, "meta-llama/Llama-3.1-8B-Instruct", "0", "8", "0"]


def test_columns_tell_what_it_serves_and_how_it_stands(awake: Model) -> None:
    head, row = awake.run("get", "modelserve", awake.name).stdout.splitlines()
    columns = ["NAME", "MODEL", "MIN", "MAX", "DESIRED", "READY", "QUEUE"]
    assert head.split()[: len(columns)] == columns
    assert row.split()[1:6] == ["meta-llama/Llama-3.1-8B-Instruct", "0", "8", "1", "1"]


def test_describe_shows_conditions_and_events(awake: Model) -> None:
    text = awake.run("describe", "modelserve", awake.name).stdout
    for word in ("MetricsAvailable", "AbleToScale", "Activated", "0 → 1", "ColdStartFinished"):
        assert word in text
    assert awake.get()["status"]["history"][-1]["reason"] == "Activation"


def test_the_cold_start_is_told_by_part_predicted_and_measured(awake: Model) -> None:
    told = awake.get()["status"]["coldStart"]
    parts = ("imagePullSeconds", "weightLoadSeconds", "warmUpSeconds", "totalSeconds")
    assert all(told[kind][part] > 0 for kind in ("predicted", "measured") for part in parts)
    assert told["measured"]["samples"] == 1


def test_the_engine_logs_what_vllm_logs(awake: Model) -> None:
    text = awake.run("logs", f"deployment/{awake.name}").stdout
    assert "Application startup complete" in text
    assert "POST /v1/chat/completions" in text


def test_the_gateway_lists_it(awake: Model) -> None:
    with contextlib.closing(awake.connection()) as connection:
        connection.request("GET", "/v1/models")
        listed = json.loads(connection.getresponse().read())
    assert awake.name in [one["id"] for one in listed["data"]]


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        pytest.param('{"model": ', 400, "no valid JSON", id="malformed"),
        pytest.param('{"messages": []}', 400, "'model' is missing", id="no model"),
        pytest.param(
            '{"model": "storry", "messages": [{"role": "user", "content": "a"}]}',
            404,
            "did you mean 'story'",
            id="unknown model",
        ),
        pytest.param(
            '{"model": "story", "messages": "hello"}', 400, "must be an array", id="wrong type"
        ),
        pytest.param(
            json.dumps({"model": "story", "messages": [{"role": "user", "content": "a " * 5000}]}),
            400,
            "4096",
            id="too long",
        ),
    ],
)
def test_bad_requests_get_openais_errors(awake: Model, body: str, status: int, told: str) -> None:
    got, _, text = awake.post(body)
    answer = json.loads(text)
    assert (got, told in answer["error"]["message"]) == (status, True), answer
    assert {"message", "type", "code"} <= set(answer["error"])


def test_silence_takes_it_back_to_zero(model: Model) -> None:
    model.apply(scaling={"cooldownSeconds": 60, "scaleDown": {"stabilizationWindowSeconds": 0}})
    assert model.chat()[0] == 200
    model.wait_for(".status.lastScale.to", 0)
    history = [each["reason"] for each in model.get()["status"]["history"]]
    assert history == ["Cooldown", "Activation"]
    model.run("wait", "pods", "--all", "--for=delete", "--timeout=60s")
    model.wait_for(".status.replicas", 0)
    assert (model.count(), model.pods()) == (0, [])
    assert model.condition("Ready")["status"] == "True"
    told = model.run("get", "events", "-o", "jsonpath={.items[*].reason}").stdout.split()
    assert {"Activated", "ColdStartFinished", "ScaledToZero"} <= set(told)
    assert model.chat()[0] == 200


def test_in_mode_manual_kubectl_scale_rules(model: Model) -> None:
    model.apply(replicas=1, scaling={"mode": "Manual"})
    model.wait_for(".status.readyReplicas", 1)
    model.run("scale", "modelserve", model.name, "--replicas=2")
    model.wait_for(".status.readyReplicas", 2)
    assert model.count() == 2
    model.run("scale", "modelserve", model.name, "--replicas=0")
    model.wait_for(".spec.replicas", 0, "deployment")
    model.wait_for(".status.replicas", 0)
    status, answer = model.chat()
    assert (status, "mode Manual" in answer["error"]["message"]) == (503, True)


def test_patch_and_edit_are_taken_up(model: Model, kubeconfig: Path) -> None:
    model.apply()
    patch = json.dumps({"spec": {"scaling": {"maxReplicas": 3}}})
    model.run("patch", "modelserve", model.name, "--type=merge", "-p", patch)
    model.wait_for(".status.observedGeneration", 2)
    edit(model, kubeconfig, "sed -i 's/maxReplicas: 3/maxReplicas: 4/'")
    model.wait_for(".status.observedGeneration", 3)
    assert model.get()["spec"]["scaling"]["maxReplicas"] == 4


def edit(model: Model, kubeconfig: Path, editor: str) -> None:
    """``kubectl edit`` with a program for an editor."""
    kubectl = Path(sys.executable).with_name("kubectl")
    subprocess.run(
        [kubectl, "-n", model.namespace, "edit", "modelserve", model.name],
        env=os.environ | {"KUBECONFIG": str(kubeconfig), "KUBE_EDITOR": editor},
        check=True,
        capture_output=True,
        timeout=60,
    )


def test_delete_removes_everything(model: Model) -> None:
    model.apply(scaling={"minReplicas": 1})
    model.wait_for(".status.readyReplicas", 1)
    assert "finalizers" not in model.get()["metadata"]
    model.run("delete", "modelserve", model.name)
    labelled = f"modelserve.dev/modelserve={model.name}"
    for kind in ("deployment", "service", "replicaset", "pod"):
        model.run("wait", kind, "-l", labelled, "--for=delete", "--timeout=60s")
    left = model.run("get", "deployments,services,pods", "-o", "name").stdout
    assert left == ""
    assert model.chat()[0] == 404


def test_a_model_too_large_for_its_gpu_says_how_much_is_missing(model: Model) -> None:
    model.try_to_apply(model={"name": "meta-llama/Llama-3.1-70B-Instruct"})
    model.wait("condition=Ready=false")
    ready = model.condition("Ready")
    assert ready["reason"] == "WeightsDoNotFit"
    assert re.search(r"needs 141\.1 GB.*tensorParallel 2", ready["message"])
    assert model.condition("Stalled")["status"] == "True"


def test_an_unknown_model_is_answered_with_its_neighbour(model: Model) -> None:
    model.try_to_apply(model={"name": "meta-llama/Llama-3.1-8B-Instrct"})
    model.wait("condition=Ready=false")
    assert "Llama-3.1-8B-Instruct" in model.condition("Ready")["message"]


def test_a_contradiction_is_refused_by_the_api_server(model: Model) -> None:
    refused = model.try_to_apply(scaling={"minReplicas": 9, "maxReplicas": 2}, check=False)
    assert refused.returncode != 0
    assert "scaling.minReplicas must not be greater than" in refused.stderr


@pytest.mark.parametrize("name", [workloads.OPERATOR, workloads.EMULATOR])
def test_a_held_request_survives_a_crash_in_mid_cold_start(
    name: str, model: Model, local_cluster: local.LocalCluster, until: Callable[..., Any]
) -> None:
    model.apply(coldStart=SLOW, scaling=AWAKE)
    with concurrent.futures.ThreadPoolExecutor() as threads:
        answer = threads.submit(model.chat)
        # A replica that is ordered counts as starting before its pod is there.
        before = until("its pod", lambda: names(model))
        local_cluster.restart(name, signal.SIGKILL)
        status, body = answer.result(timeout=90)
    assert (status, body["usage"]["completion_tokens"]) == (200, 7)
    model.wait_for(".status.readyReplicas", 1)
    assert names(model) == before
    assert model.get()["status"]["lastScale"]["reason"] == "Activation"


def names(model: Model) -> list[str]:
    """Names of its pods."""
    return [str(pod["metadata"]["name"]) for pod in model.pods()]


def test_a_gateway_that_crashes_in_mid_cold_start_comes_back_to_the_same_end(
    model: Model, local_cluster: local.LocalCluster
) -> None:
    model.apply(coldStart=SLOW, scaling=AWAKE)
    with concurrent.futures.ThreadPoolExecutor() as threads:
        answer = threads.submit(model.chat)
        model.wait_for(".status.startingReplicas", 1)
        local_cluster.restart("gateway", signal.SIGKILL)
        with pytest.raises(ConnectionError):
            answer.result(timeout=90)
    assert model.chat()[0] == 200
    assert len(names(model)) == 1


ACCOUNT = "--as=system:serviceaccount:modelserve-system:modelserve-"


@pytest.mark.parametrize(
    ("account", "question", "answer"),
    [
        ("gateway", "get modelserves", "yes"),
        ("gateway", "patch modelserves --subresource=status", "no"),
        ("gateway", "patch deployments --subresource=scale", "no"),
        ("gateway", "delete pods", "no"),
        ("gateway", "get secrets", "no"),
        ("operator", "patch deployments --subresource=scale", "yes"),
        ("operator", "patch modelserves", "no"),
        ("operator", "delete modelserves", "no"),
        ("operator", "delete deployments", "no"),
        ("operator", "patch nodes", "no"),
        ("operator", "create pods", "no"),
        ("operator", "get secrets", "no"),
        ("emulator", "patch pods --subresource=status", "yes"),
        ("emulator", "get modelserves", "no"),
        ("emulator", "patch deployments", "no"),
        ("emulator", "create pods", "no"),
        ("emulator", "list secrets", "no"),
    ],
)
def test_each_account_may_do_its_work_and_no_more(
    control_plane: local.LocalCluster, kubectl: Kubectl, account: str, question: str, answer: str
) -> None:
    said = kubectl("auth", "can-i", *question.split(), f"{ACCOUNT}{account}", check=False)
    assert said.stdout.strip() == answer
