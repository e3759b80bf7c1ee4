"""Text Generation Inference: ``text-generation-launcher --model-id MODEL …``; flags or env.

It answers to any model name, so the served name stands in the pod's engine-limits annotation.
"""

from collections.abc import Mapping

from modelserve.api.spec import EngineType, Quantization
from modelserve.catalog import gpus, images
from modelserve.engines import commandline, types
from modelserve.engines.types import Series

PROFILE = types.Profile(
    engine=EngineType.TGI,
    title="Text Generation Inference",
    version="3.3.7",
    metrics=types.MetricNames(
        running=Series("tgi_batch_current_size"),
        waiting=Series("tgi_queue_size"),
        itl=Series("tgi_request_mean_time_per_token_duration"),
        e2e=Series("tgi_request_duration"),
        queue_time=Series("tgi_request_queue_duration"),
        prompt_tokens=Series("tgi_request_input_length_sum"),
        generation_tokens=Series("tgi_request_generated_tokens_sum"),
        success=Series("tgi_request_success"),
        from_first_use=True,
    ),
    health_path="/health",
    startup_path="/health",
    metrics_path="/metrics",
    metrics_port=None,
    default_port=3000,
    queue_full_status=429,
    while_loading=types.WhileLoading.REFUSED,
)

SWITCHES = frozenset(
    {
        *("trust-remote-code", "json-output", "disable-grammar-support", "disable-custom-kernels"),
        *("enable-prefill-logprobs", "ngrok", "env"),
    }
)

# What only this engine has; the names are the launcher's.
OPTIONS = (
    *("max-input-tokens", "max-batch-total-tokens", "max-waiting-tokens", "waiting-served-ratio"),
    *("max-best-of", "max-stop-sequences", "max-top-n-tokens", "max-client-batch-size"),
    *("validation-workers", "payload-limit", "api-key", "prometheus-port"),
    *("disable-grammar-support", "enable-prefill-logprobs", "json-output"),
)
# An older spelling, which the launcher still takes, of flags and variables.
_OLDER = {"max-input-length": "max-input-tokens"}
_ALIASES = {**_OLDER, "p": "port", "e": "env"}
MAX_CONCURRENT_REQUESTS = 128
_METHODS = {
    "fp8": Quantization.FP8,
    "awq": Quantization.INT4,
    "gptq": Quantization.INT4,
    "marlin": Quantization.INT4,
    "exl2": Quantization.INT4,
    "bitsandbytes-nf4": Quantization.INT4,
    "bitsandbytes-fp4": Quantization.INT4,
}


def render(spec: types.LaunchSpec) -> types.Words:
    """``text-generation-launcher``; its bound on requests counts running and waiting ones."""
    args = [
        f"--model-id={spec.model.name}",
        f"--num-shard={spec.tensor_parallel}",
        f"--max-batch-size={spec.max_sequences}",
        f"--max-batch-prefill-tokens={spec.max_batched_tokens}",
        f"--max-total-tokens={spec.max_model_tokens}",
    ]
    if spec.quantization is Quantization.FP8:
        args.append("--quantize=fp8")
    elif spec.quantization is Quantization.INT4:
        args.append("--quantize=bitsandbytes-nf4")
    if spec.queue_limit is not None:
        args.append(f"--max-concurrent-requests={spec.max_sequences + spec.queue_limit}")
    if spec.gpu_memory_utilization != types.DEFAULT_GPU_MEMORY_UTILIZATION:
        args.append(f"--cuda-memory-fraction={spec.gpu_memory_utilization:g}")
    args += ["--hostname=0.0.0.0", f"--port={spec.port}"]
    return types.Words(
        command=("text-generation-launcher",),
        args=(*args, *spec.extra_args),
        env={},
        limits={"servedName": spec.served_name},
    )


def recognise(container: commandline.Container) -> commandline.Flags | None:
    """The flags of the launcher, or of its image started with args or env alone."""
    words = commandline.after(container.words, "text-generation-launcher")
    if words is None and not container.has_command:
        image = images.find(container.image)
        if image is not None and image.engine is EngineType.TGI:
            words = container.words
    return None if words is None else commandline.flags(words, SWITCHES, _ALIASES)


def read(flags: commandline.Flags, env: Mapping[str, str]) -> types.Seen:
    """What flags and, where they are silent, the launcher's environment variables say."""
    variables = {name.lower().replace("_", "-"): value for name, value in env.items()}
    from_env = {_OLDER.get(name, name): value for name, value in variables.items()}
    merged = commandline.Flags({**from_env, **flags.values}, flags.positionals)
    concurrent = merged.count("max-concurrent-requests") or MAX_CONCURRENT_REQUESTS
    # Without a bound of its own a batch takes all that the router lets in.
    running = min(merged.count("max-batch-size") or concurrent, concurrent)
    options = ((name, merged.values.get(name)) for name in OPTIONS)
    return types.Seen(
        model=merged.text("model-id"),
        tensor_parallel=merged.count("num-shard"),
        quantization=_METHODS.get((merged.text("quantize") or "").lower()),
        max_sequences=running,
        max_batched_tokens=merged.count("max-batch-prefill-tokens"),
        max_model_tokens=merged.count("max-total-tokens"),
        port=merged.count("port"),
        queue_limit=concurrent - running,
        gpu_memory_utilization=merged.share("cuda-memory-fraction"),
        options=tuple((name, value) for name, value in options if value is not None),
    )


def defaults(gpu: gpus.Gpu | None) -> types.Defaults:
    """The launcher's defaults: 128 requests at once; the image sets PORT=80."""
    return types.Defaults(MAX_CONCURRENT_REQUESTS, max_batched_tokens=4096, port=80)
