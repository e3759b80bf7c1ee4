"""Invalid manifests are refused by the API server, with a sentence that names field and mend."""

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.cluster

Kubectl = Callable[..., "subprocess.CompletedProcess[str]"]
MODEL = {"model": {"name": "meta-llama/Llama-3.1-8B-Instruct"}, "gpu": {"product": "h100"}}


def manifest(kind: str, spec: dict[str, Any], name: str) -> str:
    group = "modelserve.dev" if kind == "ModelServe" else "emulator.modelserve.dev"
    metadata = {"name": name}
    return json.dumps(
        {"apiVersion": f"{group}/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}
    )


@pytest.mark.parametrize(
    ("more", "field", "sentence"),
    [
        pytest.param(
            {"scaling": {"minReplicas": 9}},
            "spec.scaling.minReplicas",
            "lower the one or raise the other",
            id="min over max",
        ),
        pytest.param(
            {"scaling": {"targetUtilization": 0}},
            "spec.scaling.targetUtilization",
            "over 0 and at most 2",
            id="utilization",
        ),
        pytest.param(
            {"scaling": {"targetQueueDepth": 0.5}},
            "spec.scaling.targetQueueDepth",
            "at least 1",
            id="target",
        ),
        pytest.param(
            {"scaling": {"scaleDown": {"stabilizationWindowSeconds": 3601}}},
            "spec.scaling.scaleDown",
            "at most 3600",
            id="window",
        ),
        pytest.param(
            {"gpu": {"product": "h100", "tensorParallel": 3}},
            "spec.gpu.tensorParallel",
            "must be 1, 2, 4 or 8",
            id="tensor parallel",
        ),
        pytest.param(
            {"storage": {"readBandwidth": "0GB/s"}},
            "spec.storage.readBandwidth",
            "must be greater than zero",
            id="no bandwidth",
        ),
        pytest.param(
            {"storage": {"readBandwidth": "fast"}},
            "spec.storage.readBandwidth",
            "write for instance 2GB/s",
            id="no rate",
        ),
        pytest.param(
            {"coldStart": {"imageSize": "9 liters"}},
            "spec.coldStart.imageSize",
            "write for instance 9GB",
            id="no size",
        ),
        pytest.param(
            {"model": {"name": "own", "custom": {"layers": 3}}},
            "spec",
            "needs storage.class or storage.readBandwidth",
            id="custom without storage",
        ),
        pytest.param({"gpus": {}}, "spec.gpus", "unknown field", id="unknown field"),
    ],
)
def test_a_bad_modelserve_is_refused(
    kubectl: Kubectl, namespace: str, more: dict[str, Any], field: str, sentence: str
) -> None:
    body = manifest("ModelServe", MODEL | more, "bad")
    refused = kubectl("create", "-n", namespace, "-f", "-", stdin=body, check=False)
    assert refused.returncode != 0
    assert field in refused.stderr
    assert sentence in refused.stderr


def test_a_name_that_no_child_could_carry_is_refused(kubectl: Kubectl, namespace: str) -> None:
    body = manifest("ModelServe", MODEL, "llama.8b")
    refused = kubectl("create", "-n", namespace, "-f", "-", stdin=body, check=False)
    assert "must be a DNS label of at most 52 characters" in refused.stderr


def test_null_is_as_left_out(kubectl: Kubectl, namespace: str) -> None:
    body = manifest("ModelServe", MODEL | {"scaling": {"targetQueueDepth": None}}, "nulls")
    dry = kubectl(
        "create", "-n", namespace, "-f", "-", "--dry-run=server", "-o", "json", stdin=body
    )
    assert "targetQueueDepth" not in json.loads(dry.stdout)["spec"]["scaling"]


def test_a_bad_pool_is_refused(kubectl: Kubectl) -> None:
    body = manifest("GPUPool", {"gpu": "h100", "registry": {"bandwidth": "0MB/s"}}, "bad")
    refused = kubectl("create", "-f", "-", stdin=body, check=False)
    assert "spec.registry.bandwidth" in refused.stderr
    assert "must be greater than zero" in refused.stderr
