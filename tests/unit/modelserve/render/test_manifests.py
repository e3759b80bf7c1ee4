"""Rendered manifests against golden files; ``UPDATE_GOLDEN=1 pytest`` rewrites them."""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from modelserve.api import names
from modelserve.api import spec as specs
from modelserve.decide import prediction
from modelserve.render import deployment, resolved, service

GOLDEN = Path(__file__).parents[3] / "golden" / "render"
MODELSERVE = {"metadata": {"name": "llama", "namespace": "default", "uid": "1f3a"}}
LLAMA_8B = {"model": {"name": "meta-llama/Llama-3.1-8B-Instruct"}, "gpu": {"product": "h100"}}
CASES: dict[str, dict[str, Any]] = {
    "smallest": LLAMA_8B,
    "llama-70b-fp8-tp4": {
        "model": {"name": "meta-llama/Llama-3.1-70B-Instruct", "quantization": "fp8"},
        "gpu": {"product": "NVIDIA-H100-80GB-HBM3", "tensorParallel": 4},
        "storage": {"class": "s3", "loader": "streaming"},
        "coldStart": {"imageSize": "9GB", "warmUpSeconds": 45, "progressDeadlineSeconds": 900},
    },
    "sglang-a100": LLAMA_8B | {"engine": {"type": "sglang"}, "gpu": {"product": "a100-80gb"}},
    "everything-of-the-template": LLAMA_8B
    | {
        "engine": {"env": [{"name": "B", "value": "2"}, {"name": "A"}], "args": ["--seed=1"]},
        "drainSeconds": 7,
        "template": {
            "labels": {"team": "search", names.LABEL_MODELSERVE: "not-mine"},
            "annotations": {"note": "kept"},
            "tolerations": [{"key": "spot", "operator": "Exists"}],
            "nodeSelector": {"zone": "a"},
            "resources": {"requests": {"cpu": "4"}, "limits": {"memory": "64Gi"}},
            "priorityClassName": "high",
        },
    },
}


def resolve(document: dict[str, Any]) -> tuple[specs.ModelServeSpec, resolved.Resolved]:
    spec = specs.ModelServeSpec.model_validate(document)
    assessment = prediction.assess("llama", spec)
    assert isinstance(assessment, prediction.Assessment)
    return spec, resolved.resolve("llama", spec, assessment)


def render(document: dict[str, Any], scale: float = 1.0, **rollout: Any) -> dict[str, Any]:
    spec, found = resolve(document)
    plan = deployment.Rollout(**{"replicas": 0, "surge": 1} | rollout)
    return deployment.render(MODELSERVE, spec, found, plan, scale)


def check(name: str, document: dict[str, Any]) -> None:
    path = GOLDEN / f"{name}.yaml"
    text = yaml.safe_dump(document, sort_keys=False)
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("name", CASES)
def test_the_deployment_is_the_golden_one(name: str) -> None:
    check(f"deployment-{name}", render(CASES[name]))


def test_the_service_is_the_golden_one() -> None:
    check("service", service.render(MODELSERVE))


def test_equal_specs_give_equal_bytes() -> None:
    assert yaml.safe_dump(render(LLAMA_8B)) == yaml.safe_dump(render(LLAMA_8B))


def test_replicas_are_left_out_when_somebody_else_owns_them() -> None:
    assert "replicas" not in render(LLAMA_8B, replicas=None)["spec"]


def test_without_room_an_old_replica_goes_first() -> None:
    rolling = render(LLAMA_8B, surge=0)["spec"]["strategy"]["rollingUpdate"]
    assert rolling == {"maxSurge": 0, "maxUnavailable": 1}


def test_the_drain_shrinks_with_the_time_scale_but_never_to_nothing() -> None:
    def grace_s(scale: float) -> int:
        template = render(LLAMA_8B, scale)["spec"]["template"]["spec"]
        return int(template["terminationGracePeriodSeconds"])

    assert (grace_s(1), grace_s(60), grace_s(1e6)) == (125, 7, 6)


@pytest.mark.parametrize(
    "changed",
    [
        {"replicas": 5},
        {"scaling": {"minReplicas": 1, "cooldownSeconds": 9}},
        {"gateway": {"slotsPerReplica": 4}},
    ],
    ids=["replicas", "scaling", "gateway"],
)
def test_what_is_not_the_pods_business_rolls_nothing(changed: dict[str, Any]) -> None:
    before, after = render(LLAMA_8B), render(LLAMA_8B | changed)
    assert before["spec"]["template"] == after["spec"]["template"]
    assert before["metadata"]["annotations"] == after["metadata"]["annotations"]


def test_what_an_earlier_catalogue_resolved_stays_in_force() -> None:
    spec, found = resolve(LLAMA_8B)
    older = resolved.Resolved.parse(found.to_text().replace("v0.33.0", "v0.1.0"))
    live = {"metadata": {"annotations": {names.RESOLVED: older.to_text()}}}
    assert resolved.frozen(live, resolved.digest("llama", spec)) == older


def test_a_changed_spec_is_resolved_anew() -> None:
    _, found = resolve(LLAMA_8B)
    live = {"metadata": {"annotations": {names.RESOLVED: found.to_text()}}}
    other, _ = resolve(LLAMA_8B | {"gpu": {"product": "a100-80gb"}})
    assert resolved.frozen(live, resolved.digest("llama", other)) is None


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", "{", '{"digest": 1}'])
def test_a_broken_annotation_counts_as_none(text: str) -> None:
    live = {"metadata": {"annotations": {names.RESOLVED: text}}}
    assert resolved.frozen(live, "x") is None
