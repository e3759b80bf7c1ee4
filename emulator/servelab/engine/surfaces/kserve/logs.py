"""The lines of KServe's model server around those of the vLLM inside it."""

from modelserve.catalog import gpus
from modelserve.decide import coldstart
from modelserve.engines import launch
from servelab.engine import stamps
from servelab.engine.metrics.exporting import Load
from servelab.engine.surfaces import uvicorn
from servelab.engine.surfaces.surface import StartLine
from servelab.engine.surfaces.vllm import logs as vllm_logs

_AT = stamps.mark("%Y-%m-%d %H:%M:%S.%L")


def _kserve(file: str, function: str, line: int, message: str) -> str:
    """After KSERVE_LOGGER_FORMAT of kserve/logging.py."""
    return f"{_AT} 1 kserve INFO [{file}:{function}():{line}] {message}"


def start_lines(
    started: launch.Launch, planned: coldstart.Plan, gpu: gpus.Gpu
) -> tuple[StartLine, ...]:
    """vLLM's without those of its command line and web server, then KServe's."""
    inner = vllm_logs.start_lines(started, planned, gpu)
    web = set(vllm_logs.ready_lines(started))
    lines = [line for line in inner if line.text not in web and "[startup.py:" not in line.text]
    last = lines[-1]
    texts = (
        _kserve(
            "model_server.py", "register_model", 426, f"Registering model: {started.served_name}"
        ),
        _kserve("server.py", "_register_endpoints", 118, "OpenAI endpoints registered"),
        _kserve("server.py", "_register_endpoints", 128, "Time series endpoints not registered"),
        _kserve("server.py", "start", 191, "Starting uvicorn with 1 workers"),
        *(
            f"{_AT} 1 uvicorn.error {uvicorn.LEVEL}{text}"
            for text in (*uvicorn.STARTED, uvicorn.listening(started.port))
        ),
    )
    return (*lines, *(StartLine(last.phase, 1.0, text) for text in texts))


def access(client: str, method: str, target: str, status: int) -> str:
    """A request that was answered."""
    said = uvicorn.access(f"{client} 1", method, target, status)
    return f"{_AT} uvicorn.access {uvicorn.LEVEL}{said}"


def load(prompt_per_s: float, generation_per_s: float, gauges: Load) -> str:
    """vLLM's own."""
    return vllm_logs.load(prompt_per_s, generation_per_s, gauges)


def stop_lines() -> tuple[str, ...]:
    """What a stopping server says."""
    return (
        _kserve("model_server.py", "shutdown", 382, "Stopping the model server"),
        *(f"{_AT} 1 uvicorn.error {uvicorn.LEVEL}{text}" for text in uvicorn.STOPPED),
    )
