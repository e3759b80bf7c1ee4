"""NVIDIA NIM for LLMs: an image per model, set by environment variables ``NIM_…``.

Metric names are those of its observability page and of a recording; health paths
``/v1/health/live`` and ``/ready``.
"""

from collections.abc import Mapping

from modelserve.api.spec import EngineType
from modelserve.catalog import gpus, images
from modelserve.engines import commandline, types
from modelserve.engines.types import Series

_REGISTRY = "nvcr.io/nim/"

PROFILE = types.Profile(
    engine=EngineType.NIM,
    title="NVIDIA NIM",
    version="1.10.1",
    metrics=types.MetricNames(
        running=Series("num_requests_running"),
        waiting=Series("num_requests_waiting"),
        kv_usage=Series("gpu_cache_usage_perc"),
        ttft=Series("time_to_first_token_seconds"),
        itl=Series("time_per_output_token_seconds"),
        e2e=Series("e2e_request_latency_seconds"),
        prompt_tokens=Series("prompt_tokens_total"),
        generation_tokens=Series("generation_tokens_total"),
        success=Series("request_success_total"),
    ),
    health_path="/v1/health/ready",
    startup_path="/v1/health/ready",
    metrics_path="/v1/metrics",
    metrics_port=None,
    default_port=8000,
    queue_full_status=503,
    while_loading=types.WhileLoading.REFUSED,
)


def render(spec: types.LaunchSpec) -> types.Words:
    """No command: the image's own entrypoint, set by environment variables."""
    env = {
        "NIM_MODEL_NAME": spec.model.name,
        "NIM_SERVED_MODEL_NAME": spec.served_name,
        "NIM_TENSOR_PARALLEL_SIZE": str(spec.tensor_parallel),
        "NIM_MAX_MODEL_LEN": str(spec.max_model_tokens),
        "NIM_MAX_BATCH_SIZE": str(spec.max_sequences),
        "NIM_SERVER_PORT": str(spec.port),
    }
    limits: dict[str, str | int] = {"maxBatchedTokens": spec.max_batched_tokens}
    if spec.quantization != "none":
        limits["quantization"] = spec.quantization.value
    return types.Words(command=(), args=spec.extra_args, env=env, limits=limits)


def recognise(container: commandline.Container) -> commandline.Flags | None:
    """A NIM image, or any image with ``NIM_MODEL_NAME`` and no command of its own."""
    if container.has_command:
        return None
    image = images.find(container.image)
    is_nim = image is not None and image.engine is EngineType.NIM
    if not is_nim and "NIM_MODEL_NAME" not in container.env:
        return None
    named = container.env.get("NIM_MODEL_NAME", "").removeprefix("hf://")
    model = named or images.split(container.image)[0].removeprefix(_REGISTRY)
    return commandline.Flags({"model": model}, ())


def read(flags: commandline.Flags, env: Mapping[str, str]) -> types.Seen:
    """What the environment says; the image's own name is the model where it says nothing."""
    given = commandline.Flags(env, ())
    return types.Seen(
        model=flags.text("model"),
        served_name=given.text("NIM_SERVED_MODEL_NAME"),
        tensor_parallel=given.count("NIM_TENSOR_PARALLEL_SIZE"),
        max_sequences=given.count("NIM_MAX_BATCH_SIZE", "NIM_MAX_NUM_SEQS"),
        max_batched_tokens=given.count("NIM_MAX_NUM_BATCHED_TOKENS"),
        max_model_tokens=given.count("NIM_MAX_MODEL_LEN"),
        port=given.count("NIM_SERVER_PORT", "NIM_HTTP_API_PORT"),
        gpu_memory_utilization=given.share("NIM_KVCACHE_PERCENT"),
    )


def defaults(gpu: gpus.Gpu | None) -> types.Defaults:
    """As the vLLM inside."""
    return types.Defaults(max_sequences=256, max_batched_tokens=8192, port=8000)
