"""SGLang: ``python3 -m sglang.launch_server --model-path MODEL …`` or ``sglang serve``.

Flags and metric names are those of version 0.5.23.
"""

from collections.abc import Mapping

from modelserve.api.spec import EngineType, Quantization
from modelserve.catalog import gpus
from modelserve.engines import arguments, commandline, reading, types
from modelserve.engines.types import Series

PROFILE = types.Profile(
    engine=EngineType.SGLANG,
    title="SGLang",
    version="0.5.23",
    metrics=types.MetricNames(
        running=Series("sglang:num_running_reqs"),
        waiting=Series("sglang:num_queue_reqs"),
        kv_usage=Series("sglang:token_usage"),
        ttft=Series("sglang:time_to_first_token_seconds"),
        itl=Series("sglang:inter_token_latency_seconds"),
        e2e=Series("sglang:e2e_request_latency_seconds"),
        queue_time=Series("sglang:queue_time_seconds"),
        prompt_tokens=Series("sglang:prompt_tokens_total"),
        generation_tokens=Series("sglang:generation_tokens_total"),
        success=Series("sglang:num_requests_total"),
        preemptions=Series("sglang:num_retracted_requests_total"),
        start_up=Series("sglang:startup_time_seconds"),
    ),
    health_path="/health",
    startup_path="/health",
    metrics_path="/metrics",
    metrics_port=None,
    default_port=30000,
    queue_full_status=503,
    while_loading=types.WhileLoading.UNAVAILABLE,
    listens_while_draining=True,
)

USAGE = "launch_server.py [-h] --model-path MODEL_PATH [options]"
SWITCHES = frozenset(
    {
        "trust-remote-code",
        "enable-metrics",
        "disable-cuda-graph",
        "disable-radix-cache",
        "enable-torch-compile",
        "enable-mixed-chunk",
        "log-requests",
        "skip-server-warmup",
        "enable-cache-report",
        "enable-priority-scheduling",
        "enable-p2p-check",
        "enable-dp-attention",
        "enable-hierarchical-cache",
        "enable-lora",
        "disable-overlap-schedule",
        "disable-custom-all-reduce",
        "allow-auto-truncate",
        "skip-tokenizer-init",
        "sleep-on-idle",
        "enable-response-store",
        "abort-on-priority-when-disabled",
        "schedule-low-priority-values-first",
        "disable-hybrid-swa-memory",
        "disable-priority-preemption",
    }
)
# What only its surface, its metrics, its scheduler and its KV cache go by.
OPTIONS = (
    *("enable-metrics", "enable-cache-report", "disable-cuda-graph", "schedule-policy"),
    *("tp-size", "weight-version", "enable-mixed-chunk", "tool-call-parser", "reasoning-parser"),
    *("enable-response-store", "abort-on-priority-when-disabled", "enable-priority-scheduling"),
    *("schedule-low-priority-values-first", "swa-full-tokens-ratio", "disable-hybrid-swa-memory"),
    *("disable-priority-preemption", "priority-scheduling-preemption-threshold", "nnodes"),
)
_SHORTER = {"tp": "tp-size", "tensor-parallel-size": "tp-size"}
_METHODS = {
    "fp8": Quantization.FP8,
    "w8a8_fp8": Quantization.FP8,
    "modelopt": Quantization.FP8,
    "modelopt_fp8": Quantization.FP8,
    "awq": Quantization.INT4,
    "awq_marlin": Quantization.INT4,
    "gptq": Quantization.INT4,
    "gptq_marlin": Quantization.INT4,
    "bitsandbytes": Quantization.INT4,
    "modelopt_fp4": Quantization.INT4,
}


def render(spec: types.LaunchSpec) -> types.Words:
    """``python3 -m sglang.launch_server``; metrics are switched on, they are off by default."""
    args = [
        f"--model-path={spec.model.name}",
        f"--served-model-name={spec.served_name}",
        f"--tp-size={spec.tensor_parallel}",
        f"--max-running-requests={spec.max_sequences}",
        f"--chunked-prefill-size={spec.max_batched_tokens}",
        f"--context-length={spec.max_model_tokens}",
    ]
    if spec.quantization is Quantization.FP8:
        args.append("--quantization=fp8")
    elif spec.quantization is Quantization.INT4:
        args.append("--quantization=bitsandbytes")
    args += reading.render(spec)
    if spec.queue_limit is not None:
        args.append(f"--max-queued-requests={spec.queue_limit}")
    if spec.gpu_memory_utilization != types.DEFAULT_GPU_MEMORY_UTILIZATION:
        args.append(f"--mem-fraction-static={spec.gpu_memory_utilization:g}")
    if spec.enforce_eager:
        args.append("--disable-cuda-graph")
    if not spec.prefix_caching:
        args.append("--disable-radix-cache")
    args += ["--enable-metrics", "--host=0.0.0.0", f"--port={spec.port}"]
    command = ("python3", "-m", "sglang.launch_server")
    return types.Words(command=command, args=(*args, *spec.extra_args))


def recognise(container: commandline.Container) -> commandline.Flags | None:
    """The flags of an SGLang command line; its image has no entrypoint, so args alone are none.

    Raises UsageError where SGLang's own parser refuses it.
    """
    words = commandline.after(container.words, "-m", "sglang.launch_server")
    if words is None:
        words = commandline.after(container.words, "sglang", "serve")
    if words is None:
        return None
    table = arguments.load(f"sglang-{PROFILE.version}")
    lenient = not table.describes(container.image)
    return arguments.parse(table, words, "launch_server.py", USAGE, lenient=lenient)


def read(flags: commandline.Flags, env: Mapping[str, str]) -> types.Seen:
    """What an SGLang command line says."""
    given = {_SHORTER.get(name, name): value for name, value in flags.values.items()}
    options = tuple(
        (name, given[name])
        for name in OPTIONS
        if name in given and (name not in SWITCHES or flags.on(name))
    )
    ranks = flags.count("tp-size", "tp", "tensor-parallel-size")
    return types.Seen(
        model=flags.text("model-path", "model"),
        served_name=flags.text("served-model-name"),
        tensor_parallel=ranks,
        quantization=_METHODS.get((flags.text("quantization") or "").lower()),
        max_sequences=flags.count("max-running-requests"),
        max_batched_tokens=flags.count("chunked-prefill-size"),
        max_model_tokens=flags.count("context-length"),
        port=flags.count("port"),
        queue_limit=flags.count("max-queued-requests"),
        loader=reading.loader(flags),
        gpu_memory_utilization=flags.share("mem-fraction-static"),
        enforce_eager=flags.on("disable-cuda-graph"),
        prefix_caching=not flags.on("disable-radix-cache"),
        options=(*options, *reading.options(flags, ranks)),
    )


def defaults(gpu: gpus.Gpu | None) -> types.Defaults:
    """SGLang's own limits: chunks of 2048 tokens on small GPUs, 8192 from 70 GiB on."""
    large = gpu is not None and gpu.driver_memory_mib / 1024 >= 70
    return types.Defaults(max_sequences=256, max_batched_tokens=8192 if large else 2048, port=30000)
