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
from servelab.engine.surfaces.vllm import banner

VERSION = "0.33.0"

_AT = stamps.mark("%m-%d %H:%M:%S")
_API = f"(APIServer pid=1) INFO {_AT}"
_NO_SCALE_OUT = (
    "[factories.py:105] Scale-out endpoints are disabled. Restart vllm serve with "
    "--enable-scale-out to enable them."
)
_STOPPED = (
    "[core_client.py:797] [shutdown] MPClient: cleaning up background resources",
    "[core_client.py:799] [shutdown] MPClient: complete",
    "[launcher.py:281] [shutdown] API server: engine client stopped",
    "[launcher.py:284] [shutdown] API server: signalling HTTP server shutdown",
    "[launcher.py:306] [shutdown] API server: shutting down FastAPI HTTP server",
)


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
    return f"{uvicorn.LEVEL}{uvicorn.access(client, method, target, status)}"


def load(prompt_per_s: float, generation_per_s: float, gauges: Load) -> str:
    """Throughput (tokens per emulated second) and load; of the prefix cache since the start."""
    looked_up, found = gauges.prefix_tokens
    rate = f", Prefix cache hit rate: {found / looked_up:.1%}" if looked_up else ""
    return (
        f"{_API} [loggers.py:335] Engine 000: Avg prompt throughput: {prompt_per_s:.1f} "
        f"tokens/s, Avg generation throughput: {generation_per_s:.1f} tokens/s, "
        f"Running: {gauges.running} reqs, Waiting: {gauges.waiting} reqs, "
        f"GPU KV cache usage: {gauges.kv_usage * 100:.1f}%{rate}"
    )


def ready_lines(started: launch.Launch) -> tuple[str, ...]:
    """The last lines before the first request can be served."""
    said = banner.given(started)
    texts = [] if said.get("enable_scale_out") else [_NO_SCALE_OUT]
    texts.append(f"[entry.py:139] Starting vLLM server on {banner.address(started)}")
    if said.get("runner", "auto") != "pooling":
        texts.insert(0, "[entry.py:135] Supported tasks: ['generate']")
        texts.append("[launcher.py:188] Available routes are:")
        documents = not said.get("disable_fastapi_docs")
        texts += [f"[launcher.py:197] {route}" for route in banner.routes(documents=documents)]
    web = (f"{uvicorn.LEVEL}{text}" for text in uvicorn.STARTED)
    return (*(f"{_API} {text}" for text in texts), *web)


def stop_lines() -> tuple[str, ...]:
    """What a stopping server says."""
    web = (f"{uvicorn.LEVEL}{text}" for text in uvicorn.STOPPED[:3])
    return (*(f"{_API} {text}" for text in _STOPPED), *web)


def _core(started: launch.Launch) -> str:
    """How lines of the engine begin."""
    rank = "_DP0" if banner.given(started).get("data_parallel_size", 1) > 1 else ""
    return f"(EngineCore{rank} pid=134) INFO {_AT}"


def _worker(started: launch.Launch) -> str:
    """How lines of who has a GPU begin: a process of its own where there are several."""
    rank = f"(Worker_TP0 pid=201) INFO {_AT}"
    return rank if started.tensor_parallel > 1 else _core(started)


def _banner(started: launch.Launch) -> Sequence[StartLine]:
    model = started.model.name
    texts = [
        *(f"{_API} [startup.py:38] {line}" for line in banner.logo(VERSION, model)),
        f"{_API} [startup.py:96] {banner.non_defaults(banner.given(started))}",
        f"{_API} [model.py:2170] Using max model len {started.max_model_tokens}",
        f"{_core(started)} [core.py:139] Initializing a V1 LLM engine (v{VERSION}) with config: "
        f"{banner.config(started)}",
        f"{_worker(started)} [gpu_worker.py:513] Using V2 Model Runner",
    ]
    return startlines.at(wire.Phase.WEIGHT_LOAD, 0.0, texts)


def _weights(started: launch.Launch, planned: coldstart.Plan) -> Sequence[StartLine]:
    phase = wire.Phase.WEIGHT_LOAD
    weights, worker = planned.weights, _worker(started)
    lines = [StartLine(phase, 0.0, f"{worker} [model_runner.py:399] Loading model from scratch...")]
    for done, shards in startlines.shards(weights.n_bytes):
        text = f"{100 * done // shards:3d}% Completed | {done}/{shards}"
        pace = startlines.paced(done, shards)
        lines.append(StartLine(phase, done / shards, f"{_description(started)}: {text} [{pace}]"))
    gib = started.model.weight_bytes(started.quantization) / started.tensor_parallel / 2**30
    took = f"{worker} [default_loader.py:506] Loading weights took {startlines.took('.2f')} seconds"
    texts = (
        *([took] if weights.n_bytes else []),
        f"{worker} [model_runner.py:428] Model loading took {round(gib, 2)} GiB memory "
        f"and {startlines.took('.6f')} seconds",
    )
    return [*lines, *startlines.at(phase, 1.0, texts)]


def _description(started: launch.Launch) -> str:
    """Of the progress bar."""
    if str(banner.given(started).get("load_format")).startswith("runai_streamer"):
        return "Loading safetensors using Runai Model Streamer"
    return "Loading safetensors checkpoint shards"


def _warm_up(started: launch.Launch, planned: coldstart.Plan, gpu: gpus.Gpu) -> Sequence[StartLine]:
    lines = startlines.warm_up(planned, lambda part: _part_lines(part, started, gpu))
    after_s = sum(part.duration_s for part in planned.after_weights)
    compile_s = sum(
        part.duration_s for part in planned.after_weights if part.name is coldstart.Part.COMPILE
    )
    compiled = f" (compilation: {compile_s:.2f} s)" if compile_s else ""
    took = f"init engine (profile, create kv cache, warmup model) took {after_s:.2f} s{compiled}"
    where = f"{_core(started)} [core.py:{405 if compile_s else 412}]"
    lines.append(StartLine(wire.Phase.WARM_UP, 1.0, f"{where} {took}"))
    return [*lines, *startlines.at(wire.Phase.WARM_UP, 1.0, ready_lines(started))]


def _part_lines(part: coldstart.WarmUpPart, started: launch.Launch, gpu: gpus.Gpu) -> Sequence[str]:
    seconds, worker = part.duration_s, _worker(started)
    if part.name is coldstart.Part.DISTRIBUTED_INIT and seconds:
        expert = "N/A" if started.model.experts is None else 0
        return [
            f"{worker} [parallel_state.py:2385] rank 0 in world size {started.tensor_parallel} "
            "is assigned as DP rank 0, PP rank 0, PCP rank 0, TP rank 0, ETP rank 0, "
            f"EP rank {expert}, EPLB rank N/A"
        ]
    if part.name is coldstart.Part.COMPILE and seconds:
        return [f"{worker} [monitor.py:62] torch.compile took {seconds:.2f} s in total"]
    if part.name is coldstart.Part.PROFILE_RUN:
        return _cache_lines(started, gpu)
    if part.name is coldstart.Part.GRAPH_CAPTURE and seconds:
        # The real line goes on with the memory that graphs took, which nobody here knows.
        return [f"{worker} [model_runner.py:1163] Graph capturing finished in {seconds:.0f} secs"]
    return []


def _cache_lines(started: launch.Launch, gpu: gpus.Gpu) -> Sequence[str]:
    arguments = (
        *(started.model, gpu, started.tensor_parallel, started.quantization),
        started.gpu_memory_utilization,
    )
    room_gib = round(kv.room_bytes(*arguments) / 2**30, 2)
    tokens, length = kv.capacity_of_launch(started, gpu), started.max_model_tokens
    return [
        f"{_worker(started)} [gpu_worker.py:772] Available KV cache memory: {room_gib} GiB",
        f"{_core(started)} [kv_cache_utils.py:1147] GPU KV cache size: {tokens:,} tokens, "
        f"Maximum concurrency for {length:,} tokens per request: {tokens / length:.2f}x",
    ]
