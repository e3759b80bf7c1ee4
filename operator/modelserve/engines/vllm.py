"""vLLM: ``vllm serve MODEL …``, and the older ``python3 -m vllm.entrypoints.openai.api_server``.

Flags, metric names and defaults are those of version 0.33.0; older spellings are read as well.
"""

from collections.abc import Mapping

from modelserve import errors
from modelserve.api.spec import EngineType, Loader, Quantization
from modelserve.catalog import gpus, images, models
from modelserve.engines import commandline, types
from modelserve.engines.types import Series

PROFILE = types.Profile(
    engine=EngineType.VLLM,
    title="vLLM",
    version="0.33.0",
    metrics=types.MetricNames(
        running=Series("vllm:num_requests_running"),
        waiting=Series("vllm:num_requests_waiting"),
        kv_usage=Series("vllm:kv_cache_usage_perc"),
        ttft=Series("vllm:time_to_first_token_seconds"),
        itl=Series("vllm:inter_token_latency_seconds"),
        e2e=Series("vllm:e2e_request_latency_seconds"),
        queue_time=Series("vllm:request_queue_time_seconds"),
        prompt_tokens=Series("vllm:prompt_tokens_total"),
        generation_tokens=Series("vllm:generation_tokens_total"),
        success=Series("vllm:request_success_total"),
        preemptions=Series("vllm:num_preemptions_total"),
    ),
    health_path="/health",
    startup_path="/health",
    metrics_path="/metrics",
    metrics_port=None,
    default_port=8000,
    queue_full_status=503,
    while_loading=types.WhileLoading.REFUSED,
)

# What `vllm serve` without a model serves.
DEFAULT_MODEL = "Qwen/Qwen3-0.6B"

# Switches often seen before the model's name; without this list it would be taken for their value.
SWITCHES = frozenset(
    {
        "enable-prefix-caching",
        "no-enable-prefix-caching",
        "enable-chunked-prefill",
        "no-enable-chunked-prefill",
        "enforce-eager",
        "trust-remote-code",
        "disable-log-requests",
        "disable-log-stats",
        "enable-auto-tool-choice",
        "enable-expert-parallel",
        "enable-lora",
        "enable-sleep-mode",
        "async-scheduling",
        "no-async-scheduling",
        "headless",
    }
)
_STREAMING_FORMATS = frozenset(
    {"runai_streamer", "runai_streamer_sharded", "tensorizer", "fastsafetensors", "instanttensor"}
)
_METHODS = {
    "fp8": Quantization.FP8,
    "fbgemm_fp8": Quantization.FP8,
    "ptpc_fp8": Quantization.FP8,
    "modelopt": Quantization.FP8,
    "awq": Quantization.INT4,
    "awq_marlin": Quantization.INT4,
    "gptq": Quantization.INT4,
    "gptq_marlin": Quantization.INT4,
    "auto-round": Quantization.INT4,
    "bitsandbytes": Quantization.INT4,
    "modelopt_fp4": Quantization.INT4,
}


def render(spec: types.LaunchSpec) -> types.Words:
    """``vllm serve`` with what the spec says; int4 is made at load by bitsandbytes."""
    args = [
        "serve",
        spec.model.name,
        f"--served-model-name={spec.served_name}",
        f"--tensor-parallel-size={spec.tensor_parallel}",
        f"--max-num-seqs={spec.max_sequences}",
        f"--max-num-batched-tokens={spec.max_batched_tokens}",
        f"--max-model-len={spec.max_model_tokens}",
    ]
    if spec.quantization is Quantization.FP8:
        args.append("--quantization=fp8")
    elif spec.quantization is Quantization.INT4:
        args.append("--quantization=bitsandbytes")
    if spec.loader is Loader.STREAMING and spec.quantization is not Quantization.INT4:
        args.append("--load-format=runai_streamer")
    if spec.gpu_memory_utilization != types.DEFAULT_GPU_MEMORY_UTILIZATION:
        args.append(f"--gpu-memory-utilization={spec.gpu_memory_utilization:g}")
    if spec.enforce_eager:
        args.append("--enforce-eager")
    if not spec.prefix_caching:
        args.append("--no-enable-prefix-caching")
    args.append(f"--port={spec.port}")
    return types.Words(command=("vllm",), args=(*args, *spec.extra_args))


def recognise(container: commandline.Container) -> commandline.Flags | None:
    """The flags of a vLLM command line, or of an official image started with args alone."""
    words = commandline.after(container.words, "vllm", "serve")
    if words is None:
        for module in ("vllm.entrypoints.openai.api_server", "vllm.entrypoints.api_server"):
            words = commandline.after(container.words, "-m", module) or words
    if words is None and not container.has_command:
        image = images.find(container.image)
        if image is not None and image.engine is EngineType.VLLM:
            words = container.words
    return None if words is None else commandline.flags(words, SWITCHES)


def read(flags: commandline.Flags, env: Mapping[str, str]) -> types.Seen:
    """What a vLLM command line says."""
    load_format = flags.text("load-format")
    return types.Seen(
        model=_model(flags),
        served_name=flags.text("served-model-name"),
        tensor_parallel=flags.count("tensor-parallel-size", "tp"),
        quantization=_METHODS.get((flags.text("quantization", "q") or "").lower()),
        max_sequences=flags.count("max-num-seqs"),
        max_batched_tokens=flags.count("max-num-batched-tokens"),
        max_model_tokens=flags.count("max-model-len"),
        port=flags.count("port"),
        queue_limit=flags.count("max-num-queued-reqs"),
        loader=Loader.STREAMING if load_format in _STREAMING_FORMATS else None,
        gpu_memory_utilization=flags.share("gpu-memory-utilization"),
        enforce_eager=flags.on("enforce-eager"),
        prefix_caching=not flags.on("no-enable-prefix-caching"),
    )


def defaults(gpu: gpus.Gpu | None) -> types.Defaults:
    """vLLM's own limits by GPU memory: 1024 sequences from 70 GiB on (not on A100), else 256."""
    gib = gpu.driver_memory_mib / 1024 if gpu is not None else 0.0
    if gpu is None or gib < 70 or gpu.key.startswith("a100"):
        return types.Defaults(max_sequences=256, max_batched_tokens=2048, port=8000)
    return types.Defaults(1024, 16384 if gib >= 160 else 8192, port=8000)


def _model(flags: commandline.Flags) -> str:
    """The model's name: by flag, by place, or taken for the value of a switch unknown to us."""
    given = flags.text("model", "model-tag") or next(iter(flags.positionals), None)
    if given is not None:
        return given
    others = (value for name, value in flags.values.items() if name != "tokenizer" and value)
    return next((value for value in others if _known(value)), DEFAULT_MODEL)


def _known(name: str) -> bool:
    try:
        models.find(name)
    except errors.UnknownName:
        return False
    return True
