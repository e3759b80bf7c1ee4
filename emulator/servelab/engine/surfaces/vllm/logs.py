"""The lines a vLLM 0.33 server writes: while it starts, for each request, and about its load."""

from collections.abc import Sequence

from modelserve.api import wire
from modelserve.catalog import gpus
from modelserve.decide import coldstart
from modelserve.engines import kv, launch
from servelab.engine import stamps
from servelab.engine.metrics.exporting import Load
from servelab.engine.surfaces import startlines, uvicorn
from servelab.engine.surfaces.surface import StartLine

VERSION = "0.33.0"

_AT = stamps.mark("%m-%d %H:%M:%S")
_API = "(APIServer pid=1)"
_CORE = "(EngineCore_DP0 pid=134)"
_WEB = f"{_API} {uvicorn.LEVEL}"


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
    """Throughput (tokens per emulated second) and load; of the prefix cache since the start."""
    looked_up, found = gauges.prefix_tokens
    rate = found / looked_up if looked_up else 0.0
    return (
        f"{_API} INFO {_AT} [loggers.py:271] Engine 000: Avg prompt throughput: {prompt_per_s:.1f} "
        f"tokens/s, Avg generation throughput: {generation_per_s:.1f} tokens/s, "
        f"Running: {gauges.running} reqs, Waiting: {gauges.waiting} reqs, "
        f"GPU KV cache usage: {gauges.kv_usage * 100:.1f}%, Prefix cache hit rate: {rate:.1%}"
    )


def ready_lines() -> tuple[str, ...]:
    """The last lines before the first request can be served."""
    return tuple(f"{_WEB}{text}" for text in uvicorn.STARTED)


def stop_lines() -> tuple[str, ...]:
    """What a stopping server says."""
    return tuple(f"{_WEB}{text}" for text in uvicorn.STOPPED)


def _banner(started: launch.Launch) -> Sequence[StartLine]:
    model = started.model.name
    arguments = {
        "model_tag": model,
        "served_model_name": [started.served_name],
        "max_model_len": started.max_model_tokens,
        "tensor_parallel_size": started.tensor_parallel,
        "max_num_batched_tokens": started.max_batched_tokens,
        "max_num_seqs": started.max_sequences,
    }
    texts = [
        f"{_API} INFO {_AT} [api_server.py:2014] vLLM API server version {VERSION}",
        f"{_API} INFO {_AT} [utils.py:253] non-default args: {arguments}",
        f"{_API} INFO {_AT} [model.py:1666] Using max model len {started.max_model_tokens}",
        *_chunked(started),
        f"{_CORE} INFO {_AT} [core.py:93] Initializing a V1 LLM engine (v{VERSION}) with config: "
        f"model='{model}', max_seq_len={started.max_model_tokens}, "
        f"tensor_parallel_size={started.tensor_parallel}, quantization={started.quantization}",
    ]
    return startlines.at(wire.Phase.WEIGHT_LOAD, 0.0, texts)


def _chunked(started: launch.Launch) -> Sequence[str]:
    if dict(started.options).get("enable-chunked-prefill") == "false":
        return ()
    budget = f"max_num_batched_tokens={started.max_batched_tokens}."
    return (f"{_API} INFO {_AT} [scheduler.py:226] Chunked prefill is enabled with {budget}",)


def _weights(started: launch.Launch, planned: coldstart.Plan) -> Sequence[StartLine]:
    phase = wire.Phase.WEIGHT_LOAD
    weights, name = planned.weights, started.model.name
    lines = [
        StartLine(
            phase,
            0.0,
            f"{_CORE} INFO {_AT} [gpu_model_runner.py:3259] Starting to load model {name}...",
        )
    ]
    for done, shards in startlines.shards(weights.n_bytes):
        percent = 100 * done // shards
        text = f"{_CORE} Loading safetensors checkpoint shards: {percent:3d}% Completed"
        lines.append(StartLine(phase, done / shards, f"{text} | {done}/{shards}"))
    gib = weights.n_bytes / started.tensor_parallel / 2**30
    took_s = weights.duration_s
    texts = (
        f"{_CORE} INFO {_AT} [default_loader.py:308] Loading weights took {took_s:.2f} seconds",
        f"{_CORE} INFO {_AT} [gpu_model_runner.py:3338] Model loading took {gib:.4f} GiB memory "
        f"and {took_s:.6f} seconds",
    )
    return [*lines, *startlines.at(phase, 1.0, texts)]


def _warm_up(started: launch.Launch, planned: coldstart.Plan, gpu: gpus.Gpu) -> Sequence[StartLine]:
    lines = startlines.warm_up(planned, lambda part: _part_lines(part, started, gpu))
    after_s = sum(part.duration_s for part in planned.after_weights)
    took = "init engine (profile, create kv cache, warmup model) took"
    text = f"{_CORE} INFO {_AT} [core.py:250] {took}"
    lines.append(StartLine(wire.Phase.WARM_UP, 1.0, f"{text} {after_s:.2f} seconds"))
    return [*lines, *startlines.at(wire.Phase.WARM_UP, 1.0, ready_lines())]


def _part_lines(part: coldstart.WarmUpPart, started: launch.Launch, gpu: gpus.Gpu) -> Sequence[str]:
    seconds = part.duration_s
    if part.name is coldstart.Part.DISTRIBUTED_INIT and seconds:
        ranks = started.tensor_parallel
        return [
            f"{_CORE} INFO {_AT} [parallel_state.py:1325] rank 0 in world size {ranks} is ready"
        ]
    if part.name is coldstart.Part.COMPILE and seconds:
        return [f"{_CORE} INFO {_AT} [monitor.py:34] torch.compile takes {seconds:.2f} s in total"]
    if part.name is coldstart.Part.PROFILE_RUN:
        return _cache_lines(started, gpu)
    if part.name is coldstart.Part.GRAPH_CAPTURE and seconds:
        where = f"{_CORE} INFO {_AT} [gpu_model_runner.py:4244]"
        return [f"{where} Graph capturing finished in {seconds:.0f} secs"]
    return []


def _cache_lines(started: launch.Launch, gpu: gpus.Gpu) -> Sequence[str]:
    arguments = (
        *(started.model, gpu, started.tensor_parallel, started.quantization),
        started.gpu_memory_utilization,
    )
    room_gib = kv.room_bytes(*arguments) / 2**30
    tokens = kv.capacity_of_launch(started, gpu)
    length = started.max_model_tokens
    return [
        f"{_CORE} INFO {_AT} [gpu_worker.py:359] Available KV cache memory: {room_gib:.2f} GiB",
        f"{_CORE} INFO {_AT} [kv_cache_utils.py:1229] GPU KV cache size: {tokens:,} tokens",
        f"{_CORE} INFO {_AT} [kv_cache_utils.py:1234] Maximum concurrency for {length:,} tokens "
        f"per request: {tokens / length:.2f}x",
    ]
