"""What starting a pod takes on its node."""

from typing import Any

import pytest

from modelserve.api import wire
from modelserve.catalog import gpus
from modelserve.decide import coldstart
from servelab.node import images, planning, podspec
from servelab.timing import transfers

FACTS = planning.NodeFacts(
    gpus.find("h100-sxm"),
    coldstart.node_rates({"modelserve.dev/registry-bandwidth": "250MB/s"}),
)
SERVE = ["--model", "meta-llama/Llama-3.1-8B-Instruct", "--max-model-len", "8192"]


def plan(pod: dict[str, Any]) -> planning.PodPlan:
    store = images.NodeImages(transfers.Alone(), "n-0")
    return planning.plan(podspec.parse(pod), FACTS, store)


def test_a_vllm_container_is_an_engine(make_pod: Any) -> None:
    engine = plan(make_pod(image="vllm/vllm-openai:v0.33.0", args=SERVE)).engine
    assert engine is not None
    assert [step.phase for step in engine.steps] == [wire.Phase.WEIGHT_LOAD, wire.Phase.WARM_UP]


def test_jitter_stays_within_five_per_cent_of_the_plan(make_pod: Any) -> None:
    found = plan(make_pod(image="vllm/vllm-openai:v0.33.0", args=SERVE))
    assert found.engine is not None
    for step in found.engine.steps:
        assert step.work.duration_s == pytest.approx(step.planned_s, rel=0.05)
    assert found.works["engine"].duration_s == pytest.approx(found.engine.pull_planned_s, rel=0.05)


def test_the_pods_own_words_count(make_pod: Any) -> None:
    pod = make_pod(image="vllm/vllm-openai:v0.33.0", args=SERVE)
    pod["metadata"]["annotations"] = {
        "modelserve.dev/image-size": "1GB",
        "modelserve.dev/warm-up-seconds": "7",
    }
    found = plan(pod)
    assert found.engine is not None
    assert found.works["engine"].size_bytes == 1e9
    assert found.engine.steps[1].planned_s == pytest.approx(7)


def test_other_containers_are_no_engine_but_are_pulled(make_pod: Any) -> None:
    found = plan(make_pod(image="nginx:1"))
    assert found.engine is None
    assert found.works["engine"].size_bytes == planning.UNKNOWN_IMAGE_BYTES


def test_an_unknown_model_says_so(make_pod: Any) -> None:
    found = plan(make_pod(image="vllm/vllm-openai:v0.33.0", args=["--model", "no/such-7b"]))
    assert "no/such-7b" in found.refusal
    assert found.engine is not None


def test_a_flag_that_vllm_does_not_have_ends_it_as_argparse_does(make_pod: Any) -> None:
    args = [*SERVE, "--max-num-seqz=4"]
    found = plan(make_pod(image="vllm/vllm-openai:v0.33.0", args=args))
    assert found.exit_code == 2
    usage, message, hint = found.refusal.splitlines()
    assert usage.startswith("usage: vllm [-h] [-v] {chat,")
    assert message == "vllm: error: unrecognized arguments: --max-num-seqz=4"
    assert hint == "did you mean --max-num-seqs?"


def test_a_model_that_does_not_fit_loads_and_then_says_so(make_pod: Any) -> None:
    large = ["--model", "meta-llama/Llama-3.1-70B-Instruct"]
    found = plan(make_pod(image="vllm/vllm-openai:v0.33.0", args=large))
    assert "KV cache" in found.refusal
    assert found.engine is not None
    assert found.engine.steps[1].lines == ()
