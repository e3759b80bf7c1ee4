"""What starting a pod takes on its node."""

import dataclasses
import itertools
from typing import Any

import pytest

from modelserve.api import wire
from modelserve.catalog import gpus
from modelserve.decide import nodefacts
from modelserve.engines import arguments, tensorrt_llm, vllm
from servelab.engine import assembly
from servelab.node.machines import images
from servelab.node.pods import planning, podspec
from servelab.timing import transfers

FACTS = planning.NodeFacts(
    gpus.find("h100-sxm"),
    nodefacts.node_rates({"modelserve.dev/registry-bandwidth": "250MB/s"}),
)
MODEL = "meta-llama/Llama-3.1-8B-Instruct"
SERVE = ["--model", MODEL, "--max-model-len", "8192"]


def plan(pod: dict[str, Any]) -> planning.Plan:
    store = images.NodeImages(transfers.Alone(), "n-0")
    return planning.of_pod(podspec.parse(pod), FACTS, store)


def engine(pod: dict[str, Any]) -> planning.EnginePlan:
    return plan(pod).engines["engine"]


def test_a_vllm_container_is_an_engine(make_pod: Any) -> None:
    start = engine(make_pod(image="vllm/vllm-openai:v0.33.0", args=SERVE)).start
    assert [step.phase for step in start.steps] == [wire.Phase.WEIGHT_LOAD, wire.Phase.WARM_UP]


def test_jitter_stays_within_five_per_cent_of_the_plan(make_pod: Any) -> None:
    found = plan(make_pod(image="vllm/vllm-openai:v0.33.0", args=SERVE))
    start = found.engines["engine"].start
    for step in start.steps:
        assert step.work.duration_s == pytest.approx(step.planned_s, rel=0.05)
    assert found.works["engine"].duration_s == pytest.approx(start.pull_planned_s, rel=0.05)


def test_the_pods_own_words_count(make_pod: Any) -> None:
    pod = make_pod(image="vllm/vllm-openai:v0.33.0", args=SERVE)
    pod["metadata"]["annotations"] = {
        "modelserve.dev/image-size": "1GB",
        "modelserve.dev/warm-up-seconds": "7",
    }
    found = plan(pod)
    assert found.works["engine"].size_bytes == 1e9
    assert found.engines["engine"].start.steps[1].planned_s == pytest.approx(7)


def test_other_containers_are_no_engine_but_are_pulled(make_pod: Any) -> None:
    found = plan(make_pod(image="nginx:1"))
    assert not found.engines
    assert found.works["engine"].size_bytes == planning.UNKNOWN_IMAGE_BYTES


def test_an_unknown_model_says_so(make_pod: Any) -> None:
    found = engine(make_pod(image="vllm/vllm-openai:v0.33.0", args=["--model", "no/such-7b"]))
    assert "no/such-7b" in found.refusal


def test_a_flag_that_vllm_does_not_have_ends_it_as_argparse_does(make_pod: Any) -> None:
    args = [*SERVE, "--max-num-seqz=4"]
    found = engine(make_pod(image="vllm/vllm-openai:v0.33.0", args=args))
    assert found.exit_code == 2
    hint, usage, message = found.refusal.splitlines()
    assert usage.startswith("usage: vllm [-h] [-v] {chat,")
    assert message == "vllm: error: unrecognized arguments: --max-num-seqz=4"
    assert hint == "did you mean --max-num-seqs?"


def test_more_than_the_models_context_ends_it_in_vllms_words(make_pod: Any) -> None:
    args = ["--model", "meta-llama/Llama-2-7b-hf", "--max-model-len=8192"]
    found = engine(make_pod(image="vllm/vllm-openai:v0.33.0", args=args))
    assert found.exit_code == 1
    assert found.refusal.startswith("pydantic_core._pydantic_core.ValidationError: 1 validation")


def test_weights_larger_than_the_memory_end_the_engine_before_it_reads_any(make_pod: Any) -> None:
    large = ["--model", "meta-llama/Llama-3.1-70B-Instruct"]
    found = engine(make_pod(image="vllm/vllm-openai:v0.33.0", args=large))
    (step,) = found.start.steps
    assert (step.phase, step.work.size_bytes, found.exit_code) == (wire.Phase.WEIGHT_LOAD, 0, 1)
    assert step.lines[-1].text.endswith("Loading model from scratch...")
    assert "torch.OutOfMemoryError: CUDA out of memory" in found.refusal
    assert "Engine core initialization failed" in found.refusal.splitlines()[-1]


def test_a_vllm_whose_kv_cache_is_too_small_loads_and_says_so_in_its_words(make_pod: Any) -> None:
    args = [*SERVE[:2], "--gpu-memory-utilization", "0.3"]
    found = engine(make_pod(image="vllm/vllm-openai:v0.33.0", args=args))
    load, warm_up = found.start.steps
    assert "Model loading took 14.96 GiB" in load.lines[-1].text
    assert warm_up.lines == ()
    assert "max seq len (131072), (16.0 GiB KV cache is needed" in found.refusal
    assert "the estimated maximum model length is" in found.refusal


def test_a_vllm_without_any_room_for_a_kv_cache_says_so_in_its_words(make_pod: Any) -> None:
    args = [*SERVE[:2], "--gpu-memory-utilization", "0.1"]
    found = engine(make_pod(image="vllm/vllm-openai:v0.33.0", args=args))
    assert "ValueError: No available memory for the cache blocks." in found.refusal


SMALL = ["--model", "Qwen/Qwen3-0.6B", "--max-model-len", "2048"]


def asking(pod: dict[str, Any], resource: str) -> dict[str, Any]:
    pod["spec"]["containers"][0]["resources"] = {"limits": {resource: "1"}}
    return pod


def blocks(found: planning.EnginePlan) -> int:
    """What its engine's worker makes of it."""
    spec = assembly.build(found.spec.raw, {}, found.gpu.product_label, seed=1)
    return spec.config.kv_blocks


@pytest.mark.parametrize(
    ("resource", "profile"),
    [("nvidia.com/gpu", "1g.10gb"), ("nvidia.com/mig-1g.10gb", "")],
    ids=["single", "mixed"],
)
def test_an_engine_on_a_slice_has_the_slices_memory(
    make_pod: Any, resource: str, profile: str
) -> None:
    facts = dataclasses.replace(FACTS, mig_profile=profile)
    pods = [make_pod(image="vllm/vllm-openai:v0.33.0", args=SMALL) for _ in range(2)]
    store = images.NodeImages(transfers.Alone(), "n-0")
    pod = podspec.parse(asking(pods[0], resource))
    found = planning.of_pod(pod, facts, store).engines["engine"]
    assert found.gpu is gpus.find("h100-sxm-mig-1g.10gb")
    # The weights take 1.2 of 9.7 GB, so the rest is less than an eighth of the whole GPU's.
    assert 0 < blocks(found) < blocks(engine(pods[1])) / 8


def test_a_model_too_large_for_its_slice_says_so(make_pod: Any) -> None:
    pod = make_pod(image="vllm/vllm-openai:v0.33.0", args=SERVE)
    assert not engine(pod).refusal
    said = engine(asking(pod, "nvidia.com/mig-1g.10gb")).refusal
    assert "OutOfMemoryError" in said
    assert "GPU 0 has a total capacity of 9." in said


def test_who_asks_for_no_gpu_of_a_cut_node_finds_it_whole(make_pod: Any) -> None:
    facts = dataclasses.replace(FACTS, mig_profile="1g.10gb")
    (spec,) = podspec.parse(make_pod(image="vllm/vllm-openai:v0.33.0", args=SERVE)).containers
    assert facts.gpu_of(spec) is FACTS.gpu


def test_two_ranks_do_not_start_on_two_slices(make_pod: Any) -> None:
    pod = make_pod(image="vllm/vllm-openai:v0.33.0", args=[*SERVE, "--tensor-parallel-size=2"])
    asking(pod, "nvidia.com/mig-3g.40gb")["spec"]["containers"][0]["resources"] = {
        "limits": {"nvidia.com/mig-3g.40gb": "2"}
    }
    assert "larger than the number of available GPUs (1)" in engine(pod).refusal
    assert engine(pod).exit_code == 1


def test_two_ranks_start_on_two_gpus_and_not_on_one(make_pod: Any) -> None:
    pod = make_pod(image="vllm/vllm-openai:v0.33.0", args=[*SERVE, "--tensor-parallel-size=2"])
    resources = pod["spec"]["containers"][0].setdefault("resources", {})
    resources["limits"] = {"nvidia.com/gpu": "2"}
    assert not engine(pod).refusal
    resources["limits"] = {"nvidia.com/gpu": "1"}
    assert "World size (2) is larger" in engine(pod).refusal


def test_dummy_weights_take_no_time_and_no_storage(make_pod: Any) -> None:
    args = [*SERVE, "--load-format=dummy"]
    found = engine(make_pod(image="vllm/vllm-openai:v0.33.0", args=args))
    load = found.start.steps[0]
    assert (load.work.duration_s, load.work.size_bytes, dict(found.links)) == (0, 0, {})
    assert not any("checkpoint shards" in line.text for line in load.lines)
    assert any("Model loading took 14.96 GiB" in line.text for line in load.lines)


def test_an_engine_that_its_image_lacks_is_not_started(make_pod: Any) -> None:
    command = ["python3", "-m", "sglang.launch_server", "--model-path=llama-3.1-8b"]
    pod = make_pod(image="vllm/vllm-openai:v0.33.0", command=command)
    found = plan(pod)
    assert (found.engines, found.behaviors["engine"].exit_code) == ({}, 1)


def test_pods_of_a_deployment_share_the_lines_of_their_engines(make_pod: Any) -> None:
    starts = [engine(make_pod(image="vllm/vllm-openai:v0.33.0", args=SERVE)) for _ in range(2)]
    one, two = (each.start.steps for each in starts)
    assert all(a.lines is b.lines for a, b in zip(one, two, strict=True))


ODD = ("x", "", "1e400", "9" * 20, "[1]")
COMMANDS: dict[str, tuple[str, list[str], list[str]]] = {
    "vllm": ("vllm/vllm-openai:v0.33.0", [], ["--model", MODEL]),
    "sglang": (
        "lmsysorg/sglang:v0.5.23",
        ["python3", "-m", "sglang.launch_server"],
        ["--model-path", MODEL],
    ),
    "tgi": ("ghcr.io/huggingface/text-generation-inference:3.3.6", [], ["--model-id", MODEL]),
    "trtllm": ("nvcr.io/nvidia/tensorrt-llm/release:1.1.0", ["trtllm-serve"], [MODEL]),
}
TABLES = {"vllm": vllm.table(), "sglang": arguments.load("sglang-0.5.23")}
FLAGS = {
    **{name: [each.flags[-1] for each in table.arguments] for name, table in TABLES.items()},
    "tgi": ["--num-shard", "--max-total-tokens", "--port", "--quantize", "--cuda-memory-fraction"],
    "trtllm": [f"--{name}" for name in (*tensorrt_llm.OPTIONS, "max-batch-size", "port")],
}


@pytest.mark.parametrize("engine", COMMANDS)
def test_whatever_a_flag_is_given_there_is_a_plan(make_pod: Any, engine: str) -> None:
    image, command, args = COMMANDS[engine]
    for flag, value in itertools.product(FLAGS[engine], ODD):
        words = {"command": command, "args": [*args, f"{flag}={value}"]}
        assert plan(make_pod(image=image, **words)).engines, (flag, value)


def test_more_ranks_than_any_node_has_gpus_do_not_start(make_pod: Any) -> None:
    found = engine(make_pod(image="vllm/vllm-openai:v0.33.0", args=[*SERVE, "-tp=1000000000"]))
    assert "World size (1000000000) is larger" in found.refusal
