"""TensorRT-LLM: ``trtllm-serve MODEL --tp_size …`` (PyTorch backend).

Its command line has no word for the quantisation (the checkpoint or a file says it), so that stands
in the pod's engine-limits annotation. Metrics: ``/prometheus/metrics``, ``/metrics`` is JSON; both
are on by the file of options alone, which a script writes before it starts the server. Names of
metrics are those of 1.3; before it, the load was not told to Prometheus.
"""

import re
import shlex
from collections.abc import Mapping

from modelserve.api.spec import EngineType
from modelserve.catalog import gpus
from modelserve.engines import commandline, types
from modelserve.engines.types import Series

PROFILE = types.Profile(
    engine=EngineType.TENSORRT_LLM,
    title="TensorRT-LLM",
    version="1.3",
    metrics=types.MetricNames(
        running=Series("trtllm_num_requests_running"),
        waiting=Series("trtllm_num_requests_waiting"),
        kv_usage=Series("trtllm_kv_cache_utilization"),
        ttft=Series("trtllm_time_to_first_token_seconds"),
        itl=Series("trtllm_time_per_output_token_seconds"),
        e2e=Series("trtllm_e2e_request_latency_seconds"),
        queue_time=Series("trtllm_request_queue_time_seconds"),
        prompt_tokens=Series("trtllm_prompt_tokens_total"),
        generation_tokens=Series("trtllm_generation_tokens_total"),
        success=Series("trtllm_request_success_total"),
    ),
    health_path="/health",
    startup_path="/health",
    metrics_path="/prometheus/metrics",
    metrics_port=None,
    default_port=8000,
    queue_full_status=503,
    while_loading=types.WhileLoading.REFUSED,
)

SWITCHES = frozenset(
    {
        *("trust-remote-code", "enable-chunked-prefill", "grpc"),
        "fail-fast-on-attention-window-too-large",
    }
)
# What only its surface, its metrics and its scheduler go by.
OPTIONS = (
    *("enable-chunked-prefill", "tp-size", "guided-decoding-backend"),
    *("capacity-scheduler-policy", "tool-parser", "max-attention-window"),
    *("use-kv-cache-manager-v2", "avg-seq-len"),
)
# Options of the file that tell metrics: of requests, and of steps.
METRICS = ("return-perf-metrics", "enable-iter-perf-stats")
CONFIG = "/tmp/trtllm-serve.yaml"
_ALIASES = {
    "tensor-parallel-size": "tp-size",
    "free-gpu-memory-fraction": "kv-cache-free-gpu-memory-fraction",
    "extra-llm-api-options": "config",
}
_TOLD = re.compile(
    r"\b(return_perf_metrics|enable_iter_perf_stats|guided_decoding_backend"
    r"|capacity_scheduler_policy|use_kv_cache_manager_v2|avg_seq_len):\s*(\w+)"
)
_OF_THE_FILE = frozenset({"max-attention-window"})
# Of the layers in turn, over and over.
_WINDOWS = re.compile(r"\bmax_attention_window:\s*\[([\d\s,]+)\]")


def render(spec: types.LaunchSpec) -> types.Words:
    """A script with ``trtllm-serve``; flags are written with underscores, as it spells them."""
    args = [
        spec.model.name,
        f"--served_model_name={spec.served_name}",
        f"--tp_size={spec.tensor_parallel}",
        f"--max_batch_size={spec.max_sequences}",
        f"--max_num_tokens={spec.max_batched_tokens}",
        f"--max_seq_len={spec.max_model_tokens}",
        "--host=0.0.0.0",
        f"--port={spec.port}",
    ]
    if spec.gpu_memory_utilization != types.DEFAULT_GPU_MEMORY_UTILIZATION:
        args.append(f"--kv_cache_free_gpu_memory_fraction={spec.gpu_memory_utilization:g}")
    limits: dict[str, str | int] = {}
    if spec.quantization != "none":
        limits["quantization"] = spec.quantization.value
    args += spec.extra_args
    if "config" in commandline.flags(spec.extra_args, aliases=_ALIASES).values:
        # It brings a file of its own; only one is read.
        return types.Words(command=("trtllm-serve",), args=tuple(args), limits=limits)
    told = shlex.join(f"{name.replace('-', '_')}: true" for name in METRICS)
    serve = shlex.join(["trtllm-serve", *args, f"--config={CONFIG}"])
    script = f"printf '%s\\n' {told} > {CONFIG} && exec {serve}"
    return types.Words(command=("sh", "-c"), args=(script,), limits=limits)


def recognise(container: commandline.Container) -> commandline.Flags | None:
    """The flags of a ``trtllm-serve [serve] MODEL`` command line, and what its file says."""
    words = commandline.after(container.words, "trtllm-serve")
    if words is None:
        return None
    if words[:1] == ("serve",):
        words = words[1:]
    flags = commandline.flags(words, SWITCHES, _ALIASES)
    words_alone = {name: text for name, text in flags.values.items() if name not in _OF_THE_FILE}
    return commandline.Flags({**words_alone, **_file(container, flags)}, flags.positionals)


def _file(container: commandline.Container, flags: commandline.Flags) -> dict[str, str]:
    """Options of the file. One that the words do not tell is taken to switch metrics on."""
    if not flags.text("config"):
        return {}
    text = " ".join(container.words)
    windows = [("max_attention_window", found) for found in _WINDOWS.findall(text)]
    told = [*_TOLD.findall(text), *windows]
    if not told:
        return dict.fromkeys(METRICS, "true")
    return {name.replace("_", "-"): value for name, value in told}


def read(flags: commandline.Flags, env: Mapping[str, str]) -> types.Seen:
    """What a ``trtllm-serve`` command line says."""
    options = [(name, flags.values[name]) for name in OPTIONS if name in flags.values]
    options += [(name, "") for name in METRICS if flags.on(name)]
    return types.Seen(
        model=next(iter(flags.positionals), None),
        served_name=flags.text("served-model-name"),
        tensor_parallel=flags.count("tp-size"),
        max_sequences=flags.count("max-batch-size"),
        max_batched_tokens=flags.count("max-num-tokens"),
        max_model_tokens=flags.count("max-seq-len"),
        port=flags.count("port"),
        gpu_memory_utilization=flags.share("kv-cache-free-gpu-memory-fraction"),
        options=tuple(options),
    )


def defaults(gpu: gpus.Gpu | None) -> types.Defaults:
    """Build defaults of TensorRT-LLM."""
    return types.Defaults(max_sequences=2048, max_batched_tokens=8192, port=8000)
