"""vLLM: ``vllm serve MODEL …``, and the older ``python3 -m vllm.entrypoints.openai.api_server``.

Flags, metric names and defaults are those of version 0.33.0; images of others may use older flags.
"""

import json
from collections.abc import Mapping

from modelserve import errors
from modelserve.api.spec import EngineType, Quantization
from modelserve.catalog import gpus, images, models
from modelserve.engines import (
    arguments,
    commandline,
    nondefaults,
    parsers,
    ranks,
    reading,
    types,
)
from modelserve.engines.types import Series

PROFILE = types.Profile(
    engine=EngineType.VLLM,
    title="vLLM",
    version="0.33.0",
    metrics=types.MetricNames(
        running=Series("vllm:num_requests_running"),
        waiting=Series("vllm:num_requests_waiting"),
        kv_usage=Series("vllm:kv_cache_usage_perc", before="vllm:gpu_cache_usage_perc"),
        ttft=Series("vllm:time_to_first_token_seconds"),
        itl=Series("vllm:inter_token_latency_seconds", before="vllm:time_per_output_token_seconds"),
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

# Of 0.33.0; earlier versions took 0.9.
GPU_MEMORY_UTILIZATION = 0.92

# What `vllm serve` without a model serves.
DEFAULT_MODEL = "Qwen/Qwen3-0.6B"

# The table of arguments that ships; images of other versions are read leniently.
VERSION = "0.33.0"
PROGRAM = "vllm serve"
USAGE = "vllm serve [model_tag] [options]"
_MODULES = ("vllm.entrypoints.openai.api_server", "vllm.entrypoints.api_server")
# Smallest values that vLLM's configuration takes.
_LEAST: Mapping[str, int] = {
    "max-num-seqs": 1,
    "max-num-batched-tokens": 1,
    "max-num-queued-reqs": 0,
    "max-num-active-seqs": 1,
    "long-prefill-token-threshold": 0,
    "prefill-schedule-interval": 1,
    "tensor-parallel-size": 1,
    "pipeline-parallel-size": 1,
    "data-parallel-size": 1,
}
# What a launch keeps by vLLM's own names, for the server that answers and for its scheduler.
OPTIONS = (
    *("enable-auto-tool-choice", "tool-call-parser", "exclude-tools-when-tool-choice-none"),
    "reasoning-parser",
    *("enable-prompt-tokens-details", "runner", "task", "disable-uvicorn-access-log"),
    *("show-hidden-metrics-for-version", "enable-chunked-prefill", "long-prefill-token-threshold"),
    *("async-scheduling", "disable-hybrid-kv-cache-manager", "scheduling-policy", "watermark"),
    *("long-prefill-token-threshold-adaptive", "max-num-active-seqs", "scheduler-reserve-full-isl"),
    *("prefill-schedule-interval", ranks.BACKEND, ranks.NODES),
)
# In a container's environment: the mock engine exports the metric names of all versions.
OLD_METRIC_NAMES = "ALSO_OLD_METRIC_NAMES"
# The option of a launch whose length is to be found.
AUTO_LENGTH = ("max-model-len", "auto")
# The option of a launch for the arguments that its log repeats, as JSON.
NON_DEFAULTS = "non-default-args"
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
    args += reading.render(spec)
    if spec.gpu_memory_utilization != GPU_MEMORY_UTILIZATION:
        args.append(f"--gpu-memory-utilization={spec.gpu_memory_utilization:g}")
    if spec.enforce_eager:
        args.append("--enforce-eager")
    if not spec.prefix_caching:
        args.append("--no-enable-prefix-caching")
    if spec.kv_dtype_bytes == 1:
        args.append("--kv-cache-dtype=fp8")
    args.append(f"--port={spec.port}")
    return types.Words(command=("vllm",), args=(*args, *spec.extra_args))


def table() -> arguments.Table:
    """The arguments of ``vllm serve``."""
    return arguments.load(f"vllm-{VERSION}")


def recognise(container: commandline.Container) -> commandline.Flags | None:
    """The flags of a vLLM command line, or of an official image started with args alone.

    Raises UsageError where vLLM's own parser refuses it, StartRefused where what comes next does.
    """
    words = commandline.after(container.words, "vllm", "serve")
    program, usage = PROGRAM, USAGE
    for module in _MODULES:
        if words is None:
            words = commandline.after(container.words, "-m", module)
            program, usage = "api_server.py", "api_server.py [options]"
    if words is None and not container.has_command:
        image = images.find(container.image)
        if image is not None and image.engine is EngineType.VLLM:
            words, program, usage = container.words, PROGRAM, USAGE
    if words is None:
        return None
    if program == PROGRAM:
        words = _model_first(words)
    lenient = not table().describes(container.image)
    flags = arguments.parse(table(), words, program, usage, lenient=lenient)
    if not lenient:
        parsers.check(flags)
    return flags


def read(flags: commandline.Flags, env: Mapping[str, str]) -> types.Seen:
    """What a vLLM command line says. Raises InputError for a value out of bounds."""
    _check_bounds(flags)
    return types.Seen(
        model=_model(flags),
        served_name=flags.text("served-model-name"),
        tensor_parallel=flags.count("tensor-parallel-size"),
        quantization=_METHODS.get((flags.text("quantization") or "").lower()),
        max_sequences=flags.count("max-num-seqs"),
        max_batched_tokens=flags.count("max-num-batched-tokens"),
        max_model_tokens=flags.count("max-model-len"),
        port=flags.count("port"),
        queue_limit=flags.whole("max-num-queued-reqs"),
        loader=reading.loader(flags),
        gpu_memory_utilization=flags.share("gpu-memory-utilization"),
        enforce_eager=flags.on("enforce-eager"),
        prefix_caching=flags.on("enable-prefix-caching", default=True),
        kv_dtype_bytes=1 if (flags.text("kv-cache-dtype") or "").startswith("fp8") else 2,
        options=_options(flags, env),
    )


def _options(flags: commandline.Flags, env: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """What only vLLM goes by; API keys stand on lines of their own."""
    plain = [(name, flags.values[name]) for name in OPTIONS if name in flags.values]
    keys = "\n".join(flags.lists.get("api-key", ())) or env.get("VLLM_API_KEY", "")
    old = [("also-old-metric-names", "")] if env.get(OLD_METRIC_NAMES) else []
    auto = [AUTO_LENGTH] if flags.text("max-model-len") == "-1" else []
    read = reading.options(flags, flags.count("tensor-parallel-size"))
    told = (NON_DEFAULTS, json.dumps(nondefaults.of(table(), flags)))
    return (*plain, *auto, *([("api-key", keys)] if keys else []), *old, *read, told)


def defaults(gpu: gpus.Gpu | None) -> types.Defaults:
    """vLLM's own limits by GPU memory: 1024 sequences from 70 GiB on (not on A100), else 256."""
    gib = gpu.driver_memory_mib / 1024 if gpu is not None else 0.0
    if gpu is None or gib < 70 or gpu.key.startswith("a100"):
        return types.Defaults(256, 2048, 8000, GPU_MEMORY_UTILIZATION)
    return types.Defaults(1024, 16384 if gib >= 160 else 8192, 8000, GPU_MEMORY_UTILIZATION)


def _model_first(words: tuple[str, ...]) -> tuple[str, ...]:
    """``vllm serve`` takes the first ``--model`` for its positional."""
    for index, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name != "--model" or (equals and not value):
            continue
        taken = words[index : index + (1 if equals else 2)]
        rest = (*words[:index], *words[index + len(taken) :])
        return (value, *rest) if equals else (*taken[1:], *rest)
    names = {word.partition("=")[0].replace("_", "-") for word in words}
    named = "--served-model-name" in names and "--config" not in names
    if named and words[0].startswith("-"):
        raise errors.InputError(
            "`model` should be provided as the first positional argument when using "
            "`vllm serve`. i.e. `vllm serve <model> --<arg> <value>`."
        )
    return words


def _model(flags: commandline.Flags) -> str:
    """The model's name: by flag or place.

    Among positionals that may be values of unknown flags, the one the catalogue knows.
    """
    given = flags.text("model")
    if given is not None:
        return given
    if not flags.positionals:
        if flags.text("config"):
            raise errors.InputError(
                "the file of --config is not there to be read: name the model on the command line"
            )
        return DEFAULT_MODEL
    known = (name for name in flags.positionals if _known(name))
    return next(known, flags.positionals[0])


def _known(name: str) -> bool:
    try:
        models.find(name)
    except errors.UnknownName:
        return False
    return True


def _check_bounds(flags: commandline.Flags) -> None:
    """As vLLM's configuration checks values that its parser took."""
    for name, least in _LEAST.items():
        text = flags.text(name)
        if text is not None and float(text) < least:
            raise errors.InputError(
                f"--{name}: Input should be greater than or equal to {least:g}, not {text}"
            )
    text = flags.text("gpu-memory-utilization")
    if text is not None and not 0 < float(text) <= 1:
        raise errors.InputError(
            f"--gpu-memory-utilization: Input should be greater than 0 and at most 1, not {text}"
        )
    text = flags.text("watermark")
    if text is not None and not 0 <= float(text) < 1:
        raise errors.InputError(
            f"--watermark: Input should be at least 0 and less than 1, not {text}"
        )
