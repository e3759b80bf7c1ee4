"""The lines ``trtllm-serve`` writes: while it starts, and for each request, none of its load."""

import math
from collections.abc import Iterator, Sequence

from modelserve.api import wire
from modelserve.catalog import gpus
from modelserve.decide import coldstart
from modelserve.engines import kv, launch
from servelab.engine import assembly, stamps
from servelab.engine.metrics.exporting import Load
from servelab.engine.surfaces import startlines, uvicorn
from servelab.engine.surfaces.surface import StartLine

_AT = f"[{stamps.mark('%m/%d/%Y-%H:%M:%S')}] [TRT-LLM] [I]"


def start_lines(
    started: launch.Launch, planned: coldstart.Plan, gpu: gpus.Gpu
) -> tuple[StartLine, ...]:
    """What the engine says from process start to readiness, with the plan's numbers."""
    return (*_weights(started, planned), *_warm_up(started, planned, gpu))


def access(client: str, method: str, target: str, status: int) -> str:
    """A request that was answered."""
    return uvicorn.LEVEL + uvicorn.access(client, method, target, status)


def load(prompt_per_s: float, generation_per_s: float, gauges: Load) -> None:
    """It says nothing of its load, if it is not told to log each step."""


def ready_lines(started: launch.Launch) -> tuple[str, ...]:
    """The last lines before the first request can be served."""
    texts = (*uvicorn.STARTED, uvicorn.listening(started.port))
    return tuple(uvicorn.LEVEL + text for text in texts)


def stop_lines() -> tuple[str, ...]:
    """What a stopping server says."""
    return tuple(uvicorn.LEVEL + text for text in uvicorn.STOPPED)


def _weights(started: launch.Launch, planned: coldstart.Plan) -> Iterator[StartLine]:
    phase, weights = wire.Phase.WEIGHT_LOAD, planned.weights
    gb = weights.n_bytes / 1e9
    yield StartLine(phase, 0.0, f"{_AT} Using LLM with PyTorch backend")
    if gb:
        yield StartLine(phase, 0.0, f"{_AT} Prefetching {gb:.2f}GB checkpoint files.")
    for done, shards in startlines.shards(weights.n_bytes):
        share = done / shards
        text = f"Loading safetensors weights in parallel: {share:4.0%}| {done}/{shards}"
        yield StartLine(phase, share, text)
    per_gpu = gb / started.tensor_parallel
    yield StartLine(phase, 1.0, f"{_AT} Use {per_gpu:.2f} GB for model weights.")
    yield StartLine(phase, 1.0, f"Model init total -- {startlines.took('.2f')}s")


def _warm_up(started: launch.Launch, planned: coldstart.Plan, gpu: gpus.Gpu) -> Sequence[StartLine]:
    lines = startlines.warm_up(planned, lambda part: _part_lines(part, started, gpu))
    return [*lines, *startlines.at(wire.Phase.WARM_UP, 1.0, ready_lines(started))]


def _part_lines(part: coldstart.WarmUpPart, started: launch.Launch, gpu: gpus.Gpu) -> Sequence[str]:
    if part.name is coldstart.Part.PROFILE_RUN:
        tokens = kv.capacity_of_launch(started, gpu)
        block_tokens = assembly.RULES[started.engine].block_tokens
        most = math.ceil(started.max_model_tokens / block_tokens)
        return [
            f"[TensorRT-LLM][INFO] Max KV cache blocks per sequence: {most} "
            f"[window size={started.max_model_tokens}], tokens per block={block_tokens}, "
            f"primary blocks={tokens // block_tokens}, secondary blocks=0",
            f"{_AT} max_seq_len={started.max_model_tokens}, "
            f"max_num_requests={started.max_sequences}, "
            f"max_num_tokens={started.max_batched_tokens}",
        ]
    if part.name is coldstart.Part.GRAPH_CAPTURE and part.duration_s:
        return [f"{_AT} Run generation only CUDA graph warmup for batch size=1, draft_len=0"]
    return []
