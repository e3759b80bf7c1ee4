"""The contract between a pod and its engine, both ways."""

import contextlib
import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelserve import errors
from modelserve.api import names
from modelserve.api.spec import BatchingMode, EngineType, Loader, Quantization
from modelserve.catalog import gpus, images, models, storage
from modelserve.engines import launch, profiles, types

H100 = gpus.find("h100")
LLAMA = "meta-llama/Llama-3.1-8B-Instruct"


def spec(**changes: Any) -> launch.LaunchSpec:
    plain = launch.LaunchSpec(
        engine=EngineType.VLLM,
        model=models.find(LLAMA),
        served_name="llama-8b",
        tensor_parallel=2,
        quantization=Quantization.FP8,
        max_sequences=32,
        max_batched_tokens=8192,
        max_model_tokens=8192,
        port=8000,
        image="vllm/vllm-openai:v0.33.0",
    )
    return dataclasses.replace(plain, **changes)


def container(rendered: types.Rendered) -> dict[str, Any]:
    env = [{"name": name, "value": value} for name, value in rendered.env.items()]
    command = {"command": list(rendered.command)} if rendered.command else {}
    return {"image": rendered.image, "args": list(rendered.args), "env": env, **command}


def shell(script: str, image: str = "img") -> dict[str, Any]:
    return {"image": image, "command": ["sh", "-c", script]}


def parsed(words: dict[str, Any], annotations: dict[str, str] | None = None) -> launch.Launch:
    found = launch.parse(words, annotations or {}, H100)
    assert found is not None
    return found


def test_vllm_is_rendered_as_the_real_one_takes_it() -> None:
    rendered = launch.render(spec(extra_args=("--enable-prefix-caching",)))
    assert " ".join((*rendered.command, *rendered.args)) == (
        f"vllm serve {LLAMA} --served-model-name=llama-8b --tensor-parallel-size=2 "
        "--max-num-seqs=32 --max-num-batched-tokens=8192 --max-model-len=8192 "
        "--quantization=fp8 --gpu-memory-utilization=0.9 --port=8000 --enable-prefix-caching"
    )


@pytest.mark.parametrize(
    ("engine", "beginning"),
    [
        (EngineType.SGLANG, f"python3 -m sglang.launch_server --model-path={LLAMA}"),
        (EngineType.TENSORRT_LLM, "sh -c printf '%s\\n' 'return_perf_metrics: true' "),
        (EngineType.TGI, f"text-generation-launcher --model-id={LLAMA} --num-shard=2"),
        (EngineType.TRITON, "python3 /opt/tritonserver/python/openai/openai_frontend/main.py"),
    ],
)
def test_other_engines_are_rendered_in_their_own_words(engine: EngineType, beginning: str) -> None:
    rendered = launch.render(spec(engine=engine))
    assert " ".join((*rendered.command, *rendered.args)).startswith(beginning)


def test_nim_is_set_by_its_environment() -> None:
    rendered = launch.render(spec(engine=EngineType.NIM))
    assert rendered.command == ()
    assert rendered.env["NIM_MODEL_NAME"] == LLAMA


def test_annotations_carry_what_a_real_engine_finds_around_it() -> None:
    rendered = launch.render(
        spec(
            storage_class="s3",
            read_bytes_per_s=2e9,
            loader=Loader.STREAMING,
            image_bytes=9 * 10**9,
            warm_up_s=45.0,
            queue_limit=1000,
        )
    )
    assert rendered.annotations == {
        names.STORAGE_CLASS: "s3",
        names.READ_BANDWIDTH: "2GB/s",
        names.LOADER: "streaming",
        names.IMAGE_SIZE: "9GB",
        names.WARM_UP_SECONDS: "45",
        names.BATCHING: "continuous",
        names.QUEUE_LIMIT: "1000",
    }


CUSTOM = models.from_shape("mine/model", {"layers": 4, "hidden": 512, "vocab": 1000})

SPECS = st.builds(
    spec,
    engine=st.sampled_from(EngineType),
    model=st.sampled_from([*models.all_models(), CUSTOM]),
    served_name=st.from_regex(r"[a-z0-9][a-z0-9.-]{0,30}", fullmatch=True),
    tensor_parallel=st.sampled_from([1, 2, 4, 8]),
    quantization=st.sampled_from(Quantization),
    max_sequences=st.integers(1, 4096),
    max_batched_tokens=st.integers(1, 1_048_576),
    max_model_tokens=st.integers(1, 2048),  # no model's context is shorter
    port=st.integers(1, 65535),
    batching=st.sampled_from(BatchingMode),
    queue_limit=st.integers(0, 10**6),
    storage_class=st.one_of(st.none(), st.sampled_from([c.name for c in storage.all_classes()])),
    read_bytes_per_s=st.one_of(st.none(), st.integers(1, 10**6).map(lambda mb: mb * 1e6)),
    loader=st.sampled_from(Loader),
    image_bytes=st.one_of(st.none(), st.integers(0, 10**12)),
    warm_up_s=st.one_of(st.none(), st.integers(0, 10**6).map(lambda ms: ms / 1000)),
    gpu_memory_utilization=st.sampled_from([0.5, 0.85, 0.9, 0.95]),
)


@given(SPECS)
def test_what_is_rendered_parses_back(wanted: launch.LaunchSpec) -> None:
    image = images.of_engine(wanted.engine).reference
    wanted = dataclasses.replace(wanted, image=image)
    if wanted.engine in (EngineType.TRITON, EngineType.NIM):
        wanted = dataclasses.replace(wanted, gpu_memory_utilization=0.9)
    rendered = launch.render(wanted)
    found = launch.parse_spec(container(rendered), rendered.annotations, H100)
    assert found is not None
    assert dataclasses.replace(found, options=()) == wanted


@pytest.mark.parametrize(
    "words",
    [
        pytest.param({"image": "x", "command": ["vllm", "serve", LLAMA, "-tp", "2"]}, id="plain"),
        pytest.param(shell(f"vllm serve {LLAMA} --tensor-parallel-size=2 --headless"), id="shell"),
        pytest.param(
            shell(f"pip install x && exec vllm serve {LLAMA} --dtype half -tp=2 | tee log"),
            id="pipe",
        ),
        pytest.param(
            {
                "image": "x",
                "command": ["python3", "-m", "vllm.entrypoints.openai.api_server"],
                "args": ["--model", LLAMA, "--tensor_parallel_size", "2"],
            },
            id="old-module",
        ),
        pytest.param(
            shell(f"vllm serve --old-switch {LLAMA} -tp 2", "vllm/vllm-openai:v0.10.2"),
            id="after-an-unknown-switch-of-another-version",
        ),
        pytest.param(
            {"image": "vllm/vllm-openai:v0.6.0", "args": ["--model", LLAMA, "-tp", "2"]},
            id="old-image",
        ),
        pytest.param(
            {"image": "vllm/vllm-openai:v0.33.0", "args": ["--enforce-eager", LLAMA, "-tp", "2"]},
            id="image",
        ),
    ],
)
def test_vllm_is_known_in_any_dress(words: dict[str, Any]) -> None:
    found = parsed(words)
    assert (found.engine, found.model.name) == (EngineType.VLLM, LLAMA)
    assert (found.tensor_parallel, found.served_name, found.port) == (2, LLAMA, 8000)


@pytest.mark.parametrize("prefix_caching", [True, False])
def test_the_prefix_cache_of_vllm_is_on_unless_it_is_switched_off(*, prefix_caching: bool) -> None:
    rendered = launch.render(spec(prefix_caching=prefix_caching))
    assert ("--no-enable-prefix-caching" in rendered.args) is not prefix_caching
    found = launch.parse(container(rendered), rendered.annotations, H100)
    assert found is not None
    assert found.prefix_caching is prefix_caching


@pytest.mark.parametrize(
    ("words", "engine"),
    [
        (shell(f"python -m sglang.launch_server --model {LLAMA} --tp 2"), EngineType.SGLANG),
        (shell(f"sglang serve --model-path {LLAMA} --tp-size 2"), EngineType.SGLANG),
        (
            shell(f"trtllm-serve serve {LLAMA} --tp_size 2 --backend pytorch"),
            EngineType.TENSORRT_LLM,
        ),
        (shell(f"text-generation-launcher --model-id {LLAMA} --num-shard 2"), EngineType.TGI),
        (
            {
                "image": "ghcr.io/huggingface/text-generation-inference:3.3.5",
                "env": [{"name": "MODEL_ID", "value": LLAMA}, {"name": "NUM_SHARD", "value": "2"}],
            },
            EngineType.TGI,
        ),
        (
            {
                "image": "nvcr.io/nim/meta/llama-3.1-8b-instruct:1.8",
                "env": [{"name": "NIM_TENSOR_PARALLEL_SIZE", "value": "2"}],
            },
            EngineType.NIM,
        ),
    ],
)
def test_other_engines_are_known(words: dict[str, Any], engine: EngineType) -> None:
    found = parsed(words)
    assert (found.engine, found.tensor_parallel) == (engine, 2)
    assert found.model.weight_bytes() == 16_060_522_496


@pytest.mark.parametrize(
    "words",
    [
        {"image": "nginx"},
        {"image": "vllm/vllm-openai", "command": ["sleep", "infinity"]},
        {"image": "busybox", "command": ["sh", "-c", "echo vllm"]},
        {"image": "lmsysorg/sglang"},
        {},
    ],
)
def test_other_containers_are_no_engine(words: dict[str, Any]) -> None:
    assert launch.parse(words, {}) is None


@pytest.mark.parametrize(
    ("name", "quantization"),
    [
        ("Qwen/Qwen2.5-7B-Instruct-AWQ", Quantization.INT4),
        ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4", Quantization.INT4),
        ("nvidia/Llama-3.1-8B-Instruct-FP8", Quantization.FP8),
        (LLAMA, Quantization.NONE),
    ],
)
def test_a_checkpoint_name_says_its_format(name: str, quantization: Quantization) -> None:
    found = parsed(shell(f"vllm serve {name}"))
    assert (found.model.name, found.quantization) == (name, quantization)


def test_an_unknown_model_is_an_error_that_names_it() -> None:
    with pytest.raises(errors.UnknownName, match="acme/secret"):
        launch.parse(shell("vllm serve acme/secret"), {})


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (names.READ_BANDWIDTH, "fast"),
        (names.IMAGE_SIZE, "9 apples"),
        (names.WARM_UP_SECONDS, "-1"),
        (names.BATCHING, "sometimes"),
        (names.MODEL_SHAPE, "{"),
        (names.ENGINE_LIMITS, "[]"),
        (names.STORAGE_CLASS, "floppy"),
    ],
)
def test_an_annotation_that_cannot_be_read_is_an_error(annotation: str, value: str) -> None:
    with pytest.raises(errors.InputError):
        launch.parse(shell(f"vllm serve {LLAMA}"), {annotation: value})


@pytest.mark.parametrize(
    ("gpu", "sequences", "tokens"),
    [("h100", 1024, 8192), ("l4", 256, 2048), ("mi300x", 1024, 16384)],
)
def test_vllm_takes_its_limits_from_the_gpu(gpu: str, sequences: int, tokens: int) -> None:
    found = launch.parse(shell(f"vllm serve {LLAMA}"), {}, gpus.find(gpu))
    assert found is not None
    assert (found.max_sequences, found.max_batched_tokens) == (sequences, tokens)
    assert found.max_model_tokens == 131_072


def test_only_a_read_rate_means_no_class_and_nothing_means_nvme() -> None:
    words = shell(f"vllm serve {LLAMA}")
    assert parsed(words, {names.READ_BANDWIDTH: "2GB/s"}).storage_class is None
    assert parsed(words).storage_class == storage.find("nvme")


def test_the_real_loader_flag_means_streaming() -> None:
    words = shell(f"vllm serve {LLAMA} --load-format runai_streamer")
    assert parsed(words).loader is Loader.STREAMING


@given(st.lists(st.text(max_size=30), max_size=8))
def test_no_command_line_raises_but_for_its_model(words: list[str]) -> None:
    with contextlib.suppress(errors.InputError):
        launch.parse({"image": "x", "command": ["vllm", "serve"], "args": words}, {})


@pytest.mark.parametrize("engine", list(EngineType))
def test_every_engine_says_where_demand_is_read(engine: EngineType) -> None:
    profile = profiles.of(engine)
    assert profile.engine is engine
    assert profile.metrics.running.name
    assert profile.metrics.waiting.name
    assert profile.health_path.startswith("/")
    assert profile.queue_full_status in (400, 429, 503)
