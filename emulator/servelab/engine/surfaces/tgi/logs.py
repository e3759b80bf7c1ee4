"""The lines that TGI 3.3's launcher, router and shards write, as text or, if so started, as JSON.

Where they are written: launcher/src/main.rs, router/src/server.rs, backends/v3/src, and of the
shards server/text_generation_server. Served requests are told with their spans, which a log of
accesses does not have: there is no line for those.
"""

import json
from collections.abc import Iterator, Sequence

from modelserve.api import wire
from modelserve.catalog import gpus
from modelserve.decide import coldstart
from modelserve.engines import kv, launch
from servelab.engine import stamps
from servelab.engine.metrics.exporting import Load
from servelab.engine.surfaces import startlines
from servelab.engine.surfaces.surface import StartLine

_AT = stamps.mark("%Y-%m-%dT%H:%M:%S.%fZ")
_LAUNCHER = "text_generation_launcher"
_ROUTER = "text_generation_router"
# The launcher says that it waits as often.
WAITING_S = 10.0
GRAPHS = (1, 2, 4, 8, 16, 32)


class _Writer:
    """Lines of one engine; ``as_json`` after the launcher's flag."""

    def __init__(self, *, as_json: bool) -> None:
        self._json = as_json

    def launcher(self, message: str, rank: int | None = None) -> str:
        """The launcher's own, or what a shard said."""
        if not self._json:
            span, fields = ("shard-manager: ", f" rank={rank}") if rank is not None else ("", "")
            return f"{_AT}  INFO {span}{_LAUNCHER}: {message}{fields}"
        line: dict[str, object] = {"timestamp": _AT, "level": "INFO"}
        line |= {"fields": {"message": message}, "target": _LAUNCHER}
        if rank is not None:
            span_fields: dict[str, object] = {"rank": rank, "name": "shard-manager"}
            line |= {"span": span_fields, "spans": [span_fields]}
        return json.dumps(line, separators=(",", ":"))

    def router(self, module: str, file: str, number: int, message: str) -> str:
        """The router's, with its place in the source."""
        if not self._json:
            return f"{_AT}  INFO {module}: {file}:{number}: {message}"
        line: dict[str, object] = {"timestamp": _AT, "level": "INFO", "message": message}
        line |= {"target": module, "filename": file, "line_number": number}
        return json.dumps(line, separators=(",", ":"))


class TgiLog:
    """The log of one engine; ``as_json`` after the launcher's flag."""

    def __init__(self, *, as_json: bool = False) -> None:
        self._write = _Writer(as_json=as_json)

    def start_lines(
        self, started: launch.Launch, planned: coldstart.Plan, gpu: gpus.Gpu
    ) -> Sequence[StartLine]:
        """What it says from process start to readiness, with the plan's numbers."""
        return (
            *_loading(self._write, started, planned.weights.duration_s),
            *_warm_up(self._write, started, planned, gpu),
        )

    def access(self, client: str, method: str, target: str, status: int) -> str | None:
        """The router logs no access."""
        return None

    def load(self, prompt_per_s: float, generation_per_s: float, gauges: Load) -> str | None:
        """The router does not tell its load."""
        return None

    def stop_lines(self) -> Sequence[str]:
        """What a stopping engine says."""
        write = self._write
        server = (f"{_ROUTER}::server", "router/src/server.rs", 2399)
        return (
            write.launcher("Terminating webserver"),
            write.launcher("Waiting for webserver to gracefully shutdown"),
            write.router(*server, "signal received, starting graceful shutdown"),
            write.launcher("webserver terminated"),
            write.launcher("Shutting down shards"),
            write.launcher("Terminating shard", 0),
            write.launcher("Waiting for shard to gracefully shutdown", 0),
            write.launcher("shard terminated", 0),
        )


def _loading(write: _Writer, started: launch.Launch, load_s: float) -> Iterator[StartLine]:
    phase, model = wire.Phase.WEIGHT_LOAD, started.model.name
    ranks = range(started.tensor_parallel)
    texts = [
        write.launcher("Using attention flashinfer - Prefix caching true"),
        write.launcher(f"Using default cuda graphs {list(GRAPHS)}"),
        write.launcher(f"Starting check and download process for {model}"),
        write.launcher("Files are already present on the host. Skipping download."),
        write.launcher(f"Successfully downloaded weights for {model}"),
    ]
    if started.tensor_parallel > 1:
        texts.insert(1, write.launcher(f"Sharding model on {len(ranks)} processes"))
    texts += [write.launcher("Starting shard", rank) for rank in ranks]
    texts += [write.launcher("Using prefix caching = True")]
    texts += [write.launcher("Using Attention = flashinfer")]
    yield from (StartLine(phase, 0.0, text) for text in texts)
    for times in range(1, int(load_s / WAITING_S) + 1):
        share = times * WAITING_S / load_s
        for rank in ranks:
            text = write.launcher("Waiting for shard to be ready...", rank)
            yield StartLine(phase, share, text)
    for rank in ranks:
        socket = f"Server started at unix:///tmp/text-generation-server-{rank}"
        yield StartLine(phase, 1.0, write.launcher(socket))
        ready = write.launcher(f"Shard ready in {startlines.took('.9f')}s", rank)
        yield StartLine(phase, 1.0, ready)


def _warm_up(
    write: _Writer, started: launch.Launch, planned: coldstart.Plan, gpu: gpus.Gpu
) -> Iterator[StartLine]:
    phase = wire.Phase.WARM_UP
    backend = (f"{_ROUTER}_v3", "backends/v3/src/lib.rs")
    yield StartLine(phase, 0.0, write.launcher("Starting Webserver"))
    yield StartLine(phase, 0.0, write.router(*backend, 125, "Warming up model"))
    tokens = kv.capacity_of_launch(started, gpu)
    sized = (
        write.launcher(f"KV-cache blocks: {tokens}, size: 1"),
        write.launcher(f"Cuda Graphs are enabled for sizes {list(reversed(GRAPHS))}"),
    )
    yield from startlines.warm_up(
        planned, lambda part: sized if part.name is coldstart.Part.PROFILE_RUN else ()
    )
    most = started.max_model_tokens
    server, file = f"{_ROUTER}::server", "router/src/server.rs"
    last = (
        write.router(*backend, 137, f"Setting max batch total tokens to {tokens}"),
        write.router(*backend, 166, "Using backend V3"),
        write.router(
            *(f"{_ROUTER}_v3", "backends/v3/src/main.rs", 168),
            f"Maximum input tokens defaulted to {most - 1}",
        ),
        write.router(server, file, 1586, "Using the Hugging Face API"),
        write.router(server, file, 2302, "Connected"),
    )
    yield from startlines.at(phase, 1.0, last)
