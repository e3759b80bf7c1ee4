"""Triton with the TensorRT-LLM backend behind its OpenAI front end.

``python3 openai_frontend/main.py --model-repository DIR --tokenizer MODEL``. The limits stand in
the model repository's files; a pod carries them in its engine-limits annotation.
"""

from collections.abc import Mapping

from modelserve.api.spec import EngineType
from modelserve.catalog import gpus
from modelserve.engines import commandline, types
from modelserve.engines.types import Series

_REQUESTS = "nv_trt_llm_request_metrics"

PROFILE = types.Profile(
    engine=EngineType.TRITON,
    title="Triton Inference Server",
    version="25.09",
    metrics=types.MetricNames(
        running=Series(_REQUESTS, (("request_type", "scheduled"),)),
        waiting=Series(_REQUESTS, (("request_type", "waiting"),)),
        kv_usage=Series(
            "nv_trt_llm_kv_cache_block_metrics", (("kv_cache_block_type", "fraction"),)
        ),
        success=Series("nv_inference_request_success"),
    ),
    health_path="/health/ready",
    startup_path="/health/ready",
    metrics_path="/metrics",
    metrics_port=None,
    default_port=9000,
    queue_full_status=503,
    while_loading=types.WhileLoading.REFUSED,
)

MODEL_REPOSITORY = "/models"
FRONT_END = "/opt/tritonserver/python/openai/openai_frontend/main.py"


def render(spec: types.LaunchSpec) -> types.Words:
    """The OpenAI front end over a model repository at ``/models``."""
    args = (
        f"--model-repository={MODEL_REPOSITORY}",
        f"--tokenizer={spec.model.name}",
        "--backend=tensorrtllm",
        "--host=0.0.0.0",
        f"--openai-port={spec.port}",
    )
    limits: dict[str, str | int] = {
        "servedName": spec.served_name,
        "tensorParallel": spec.tensor_parallel,
        "maxSequences": spec.max_sequences,
        "maxBatchedTokens": spec.max_batched_tokens,
        "maxModelLength": spec.max_model_tokens,
    }
    if spec.quantization != "none":
        limits["quantization"] = spec.quantization.value
    return types.Words(
        command=("python3", FRONT_END), args=(*args, *spec.extra_args), env={}, limits=limits
    )


def recognise(container: commandline.Container) -> commandline.Flags | None:
    """The flags of the OpenAI front end (a bare ``tritonserver`` speaks another API)."""
    for index, word in enumerate(container.words):
        if word.endswith("openai_frontend/main.py"):
            return commandline.flags(commandline.until_operator(container.words[index + 1 :]))
    return None


def read(flags: commandline.Flags, env: Mapping[str, str]) -> types.Seen:
    """What the front end's command line says: the tokenizer names the model."""
    return types.Seen(model=flags.text("tokenizer"), port=flags.count("openai-port"))


def defaults(gpu: gpus.Gpu | None) -> types.Defaults:
    """Of the TensorRT-LLM backend; the front end listens on 9000."""
    return types.Defaults(max_sequences=2048, max_batched_tokens=8192, port=9000)
