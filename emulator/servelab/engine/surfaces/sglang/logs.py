"""The lines an SGLang 0.5 server writes: while it starts, for each request, and about its load."""

import dataclasses
from collections.abc import Sequence

from modelserve.api import wire
from modelserve.catalog import gpus
from modelserve.decide import coldstart
from modelserve.engines import kv, launch, sglang
from servelab.engine import stamps
from servelab.engine.metrics.exporting import Load
from servelab.engine.surfaces import startlines, uvicorn
from servelab.engine.surfaces.surface import StartLine

# What the server does once it listens.
_SERVED = (coldstart.Part.API_SERVER,)
_FORM = "%Y-%m-%d %H:%M:%S"
_AT = f"[{stamps.mark(_FORM)}]"
_TP0 = f"[{stamps.mark(_FORM)} TP0]"
_WEB = f"{_AT} {uvicorn.LEVEL}"


def start_lines(
    started: launch.Launch, planned: coldstart.Plan, gpu: gpus.Gpu
) -> tuple[StartLine, ...]:
    """What the engine says from process start to readiness, with the plan's numbers."""
    return (
        *_banner(started),
        *_weights(started, planned),
        *_warm_up(started, planned, gpu),
    )


def access(client: str, method: str, target: str, status: int) -> str:
    """A request that was answered."""
    return f"{_WEB}{uvicorn.access(client, method, target, status)}"


def load(prompt_per_s: float, generation_per_s: float, gauges: Load) -> str:
    """Throughput (tokens per emulated second) and load, as after 40 steps of decoding."""
    return (
        f"{_AT} Decode batch, #running-req: {gauges.running}, token usage: {gauges.kv_usage:.2f}, "
        f"cuda graph: True, gen throughput (token/s): {generation_per_s:.2f}, "
        f"#queue-req: {gauges.waiting}"
    )


def ready_lines() -> tuple[str, ...]:
    """The last lines of the warm-up, which is a request to a server that listens already."""
    return (
        access("127.0.0.1:51908", "GET", "/model_info", 200),
        access("127.0.0.1:51922", "POST", "/generate", 200),
        f"{_AT} The server is fired up and ready to roll!",
    )


def stop_lines() -> tuple[str, ...]:
    """What a stopping server says."""
    return (
        f"{_AT} SIGTERM received. signum=None frame=None. Draining requests and shutting down...",
        f"{_AT} Gracefully exiting... Remaining number of requests 0. "
        "Remaining requests remaining_rids=[].",
        *(f"{_WEB}{text}" for text in uvicorn.STOPPED),
    )


def _banner(started: launch.Launch) -> Sequence[StartLine]:
    arguments = {
        "model_path": started.model.name,
        "tokenizer_path": started.model.name,
        "served_model_name": started.served_name,
        "tp_size": started.tensor_parallel,
        "context_length": started.max_model_tokens,
        "mem_fraction_static": started.gpu_memory_utilization,
        "max_running_requests": started.max_sequences,
        "max_queued_requests": started.queue_limit,
        "chunked_prefill_size": started.max_batched_tokens,
        "port": started.port,
        "disable_cuda_graph": started.enforce_eager,
        "disable_radix_cache": not started.prefix_caching,
    }
    given = {
        name.replace("-", "_"): _typed(value)
        for name, value in started.options
        if name in sglang.OPTIONS
    }
    told = ", ".join(f"{name}={value!r}" for name, value in {**given, **arguments}.items())
    texts = [
        f"{_AT} server_args=ServerArgs({told})",
        f"{_AT} Using default HuggingFace chat template with detected content format: string",
    ]
    return startlines.at(wire.Phase.WEIGHT_LOAD, 0.0, texts)


def _typed(value: str) -> object:
    """A switch that is on has no value."""
    if value in ("", "true"):
        return True
    return int(value) if value.isdecimal() else value


def _weights(started: launch.Launch, planned: coldstart.Plan) -> Sequence[StartLine]:
    phase, weights = wire.Phase.WEIGHT_LOAD, planned.weights
    lines = [StartLine(phase, 0.0, f"{_TP0} Load weight begin.")]
    for done, shards in startlines.shards(weights.n_bytes):
        text = f"Loading safetensors checkpoint shards: {100 * done // shards:3d}% Completed"
        lines.append(StartLine(phase, done / shards, f"{text} | {done}/{shards}"))
    gib = started.model.weight_bytes(started.quantization) / started.tensor_parallel / 2**30
    end = f"{_TP0} Load weight end. elapsed={startlines.took('.2f')} s, mem usage={gib:.2f} GB."
    return [*lines, StartLine(phase, 1.0, end)]


def _warm_up(started: launch.Launch, planned: coldstart.Plan, gpu: gpus.Gpu) -> Sequence[StartLine]:
    lines = startlines.warm_up(planned, lambda part: _part_lines(part, started, gpu))
    computed_s = sum(each.duration_s for each in planned.warm_up if each.name not in _SERVED)
    share = computed_s / planned.warm_up_s if planned.warm_up_s else 1.0
    texts = (*uvicorn.STARTED, uvicorn.listening(started.port))
    web = [_timings(planned), *(f"{_WEB}{text}" for text in texts)]
    *before, last = startlines.at(wire.Phase.WARM_UP, share, web)
    listening = dataclasses.replace(last, listens=True)
    return [*lines, *before, listening, *startlines.at(wire.Phase.WARM_UP, 1.0, ready_lines())]


def _part_lines(part: coldstart.WarmUpPart, started: launch.Launch, gpu: gpus.Gpu) -> Sequence[str]:
    seconds = part.duration_s
    if part.name is coldstart.Part.PROFILE_RUN:
        tokens = kv.capacity_of_launch(started, gpu)
        return [
            f"{_TP0} max_total_num_tokens={tokens}, "
            f"chunked_prefill_size={started.max_batched_tokens}, "
            f"max_running_requests={started.max_sequences}, "
            f"context_len={started.max_model_tokens}"
        ]
    if part.name is coldstart.Part.GRAPH_CAPTURE and seconds:
        return [f"{_TP0} Capture decode CUDA graph end. elapsed={seconds:.2f} s"]
    return []


def _timings(planned: coldstart.Plan) -> str:
    took = {part.name: part.duration_s for part in planned.warm_up}
    graphs_s = took.get(coldstart.Part.GRAPH_CAPTURE, 0.0)
    cache_s = took.get(coldstart.Part.PROFILE_RUN, 0.0)
    total_s = planned.weights.duration_s + planned.warm_up_s
    return (
        f"{_AT} Engine startup timings (s): load_weight={planned.weights.duration_s:.2f}, "
        f"kv_cache_allocation={cache_s:.2f}, scheduler_e2e={total_s:.2f}, "
        f"cuda_graph={{decode={graphs_s:.2f}}}, tokenizer_e2e={total_s:.2f}"
    )
