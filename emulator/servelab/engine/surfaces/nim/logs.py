"""The lines of a NIM 1.x, after logs in NVIDIA's guides: its own, around those of an old vLLM."""

from collections.abc import Sequence

from modelserve.api import wire
from modelserve.catalog import gpus
from modelserve.decide import coldstart
from modelserve.engines import kv, launch
from servelab.engine import stamps
from servelab.engine.core.config import BLOCK_TOKENS
from servelab.engine.metrics.exporting import Load
from servelab.engine.surfaces import startlines
from servelab.engine.surfaces.surface import StartLine

VERSION = "1.10.1"

_AT = stamps.mark("%Y-%m-%d %H:%M:%S.%L")
_RULE = "=" * 43
_PATHS = (
    *("/openapi.json", "/docs", "/docs/oauth2-redirect", "/v1/metrics", "/v1/health/ready"),
    *("/v1/health/live", "/v1/models", "/v1/license", "/v1/metadata", "/v1/manifest"),
    *("/v1/version", "/v1/chat/completions", "/v1/completions"),
)


def start_lines(
    started: launch.Launch, planned: coldstart.Plan, gpu: gpus.Gpu
) -> tuple[StartLine, ...]:
    """From the banner to readiness, with the plan's numbers."""
    load, warm_up = wire.Phase.WEIGHT_LOAD, wire.Phase.WARM_UP
    return (
        *startlines.at(load, 0.0, _banner(started)),
        *startlines.at(load, 1.0, _loaded(started, planned)),
        *startlines.warm_up(planned, lambda part: _part_lines(part, started, gpu)),
        *startlines.at(warm_up, 1.0, _ready(started)),
    )


def access(client: str, method: str, target: str, status: int) -> str:
    """A request that was answered."""
    return _info("httptools_impl.py:481", f'{client} - "{method} {target} HTTP/1.1" {status}')


def load(prompt_per_s: float, generation_per_s: float, gauges: Load) -> str:
    """Throughput (tokens per emulated second) and load."""
    return _info(
        "metrics.py:334",
        f"Avg prompt throughput: {prompt_per_s:.1f} tokens/s, "
        f"Avg generation throughput: {generation_per_s:.1f} tokens/s, "
        f"Running: {gauges.running} reqs, Swapped: 0 reqs, Pending: {gauges.waiting} reqs, "
        f"GPU KV cache usage: {gauges.kv_usage * 100:.1f}%, CPU KV cache usage: 0.0%",
    )


def stop_lines() -> tuple[str, ...]:
    """What a stopping server says."""
    return (
        _info("server.py:264", "Shutting down"),
        _info("on.py:67", "Waiting for application shutdown."),
        _info("on.py:76", "Application shutdown complete."),
        _info("server.py:94", "Finished server process [1]"),
    )


def _info(place: str, message: str) -> str:
    return f"INFO {_AT} {place}] {message}"


def _banner(started: launch.Launch) -> Sequence[str]:
    profile = f"vllm-bf16-tp{started.tensor_parallel}"
    return (
        _RULE,
        "== NVIDIA Inference Microservice LLM NIM ==",
        _RULE,
        f"NVIDIA Inference Microservice LLM NIM Version {VERSION}",
        f"Model: {started.model.name}",
        _info("api_server.py:489", f"NIM LLM API version {VERSION}"),
        _info("ngc_profile.py:219", "Detected 1 compatible profile(s)."),
        _info("ngc_injector.py:141", f"Selected profile: {profile}"),
        _info("ngc_injector.py:146", "Profile metadata: llm_engine: vllm"),
        _info("ngc_injector.py:146", f"Profile metadata: tp: {started.tensor_parallel}"),
        _info(
            "ngc_injector.py:166",
            "Preparing model workspace. This step might download additional files to run the "
            "model.",
        ),
    )


def _loaded(started: launch.Launch, planned: coldstart.Plan) -> Sequence[str]:
    weights = planned.weights
    ready = f"Model workspace is now ready. It took {startlines.took('.3f')} seconds"
    gib = weights.n_bytes / started.tensor_parallel / 2**30
    return (
        _info("ngc_injector.py:172", ready),
        _info("model_runner.py:173", f"Loading model weights took {gib:.4f} GB"),
    )


def _part_lines(part: coldstart.WarmUpPart, started: launch.Launch, gpu: gpus.Gpu) -> Sequence[str]:
    if part.name is coldstart.Part.PROFILE_RUN:
        blocks = kv.capacity_of_launch(started, gpu) // BLOCK_TOKENS
        return [_info("gpu_executor.py:119", f"# GPU blocks: {blocks}, # CPU blocks: 2048")]
    if part.name is coldstart.Part.GRAPH_CAPTURE and part.duration_s:
        took = f"Graph capturing finished in {part.duration_s:.0f} secs."
        return [_info("model_runner.py:1054", took)]
    return []


def _ready(started: launch.Launch) -> Sequence[str]:
    at = f"0.0.0.0:{started.port}"
    return (
        _info("api_server.py:456", "Serving endpoints:"),
        *(f"{at}{path}" for path in _PATHS),
        _info("server.py:82", "Started server process [1]"),
        _info("on.py:48", "Waiting for application startup."),
        _info("on.py:62", "Application startup complete."),
        _info("server.py:214", f"Uvicorn running on http://{at} (Press CTRL+C to quit)"),
    )
