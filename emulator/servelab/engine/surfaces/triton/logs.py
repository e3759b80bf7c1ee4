"""The lines that Triton 2.61 writes: its own log, and uvicorn's of the OpenAI front end.

Where they are written: core/src/{server,model_lifecycle}.cc, server/src/http_server.cc, and
python/openai/openai_frontend.
"""

from collections.abc import Iterator

from modelserve.api import wire
from modelserve.catalog import gpus
from modelserve.decide import coldstart
from modelserve.engines import kv, launch, triton
from servelab.engine import stamps
from servelab.engine.metrics import triton as metrics
from servelab.engine.metrics.exporting import Load
from servelab.engine.surfaces import startlines, uvicorn
from servelab.engine.surfaces.surface import StartLine
from servelab.engine.surfaces.triton import repository

_AT = stamps.mark("%m%d %H:%M:%S.%f")
_PID = 1


def _info(file: str, line: int, message: str) -> str:
    return f'I{_AT} {_PID} {file}:{line}] "{message}"'


def _engine(message: str) -> str:
    """TensorRT-LLM's own."""
    return f"[TensorRT-LLM][INFO] {message}"


def start_lines(
    started: launch.Launch, planned: coldstart.Plan, gpu: gpus.Gpu
) -> tuple[StartLine, ...]:
    """From process start to readiness, with the plan's numbers."""
    return (*_loading(started, planned), *_ready(started, planned, gpu))


def access(client: str, method: str, target: str, status: int) -> str | None:
    """uvicorn's line; Triton's own server logs no access, and has no path under ``/v1``."""
    if target.startswith("/v2"):
        return None
    return uvicorn.LEVEL + uvicorn.access(client, method, target, status)


def load(prompt_per_s: float, generation_per_s: float, gauges: Load) -> str | None:
    """Triton does not tell its load."""
    return None


def stop_lines() -> tuple[str, ...]:
    """What a stopping server says."""
    return (
        "Shutting down Triton OpenAI-Compatible Frontend...",
        "Shutting down Triton Inference Server...",
        _info("server.cc", 312, "Waiting for in-flight requests to complete."),
        _info("server.cc", 343, "All models are stopped, unloading models"),
        _info("server.cc", 352, "Timeout 30: Found 0 live models and 0 in-flight non-inference "
              "requests"),
    )  # fmt: skip


def _loading(started: launch.Launch, planned: coldstart.Plan) -> Iterator[StartLine]:
    phase = wire.Phase.WEIGHT_LOAD
    names = (*metrics.STEPS, started.served_name)
    for name in names:
        loading = _info("model_lifecycle.cc", 473, f"loading: {name}:{metrics.VERSION}")
        yield StartLine(phase, 0.0, loading)
    gib = planned.weights.n_bytes / started.tensor_parallel / 2**20
    yield StartLine(phase, 0.0, _engine(f"MPI size: {started.tensor_parallel}, MPI local size: "
                                        f"{started.tensor_parallel}, rank: 0"))  # fmt: skip
    yield StartLine(phase, 1.0, _engine(f"Loaded engine size: {gib:.0f} MiB"))


def _ready(started: launch.Launch, planned: coldstart.Plan, gpu: gpus.Gpu) -> Iterator[StartLine]:
    phase = wire.Phase.WARM_UP
    tokens = kv.capacity_of_launch(started, gpu)
    text = f"[MemUsageChange] Allocated for max tokens in paged KV cache ({tokens})."
    yield from startlines.warm_up(
        planned,
        lambda part: [_engine(text)] if part.name is coldstart.Part.PROFILE_RUN else [],
    )
    for name in (*metrics.STEPS, started.served_name):
        text = f"successfully loaded '{name}'"
        yield StartLine(phase, 1.0, _info("model_lifecycle.cc", 849, text))
    native = triton.NATIVE in started.options
    for text in _native(started) if native else _front_end(started):
        yield StartLine(phase, 1.0, text)


def _native(started: launch.Launch) -> tuple[str, ...]:
    metrics_port = triton.metrics_port(dict(started.options))
    return (
        f"| server_version | {repository.VERSION} |",
        _info("http_server.cc", 4789, f"Started HTTPService at 0.0.0.0:{started.port}"),
        _info("http_server.cc", 363, f"Started Metrics Service at 0.0.0.0:{metrics_port}"),
    )


def _front_end(started: launch.Launch) -> tuple[str, ...]:
    return (
        f"Found model: name='{started.served_name}', backend='ensemble'",
        "[WARNING] Adding CORS for the following origins: ['http://localhost']",
        *(uvicorn.LEVEL + text for text in (*uvicorn.STARTED, uvicorn.listening(started.port))),
    )
