"""From settings and a command line to an engine that can be run, and how it starts."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from modelserve import errors
from modelserve.api import names, wire
from modelserve.catalog import gpus, models
from modelserve.decide import coldstart, nodefacts
from modelserve.engines import arguments, commandline, triton, vllm
from modelserve.engines import launch as launches
from servelab.engine import assembly
from servelab.engine.alone.settings import Settings
from servelab.engine.assembly import EngineSpec
from servelab.engine.surfaces import logs, startlines
from servelab.timing import jitter

EXAMPLE = "servelab engine meta-llama/Llama-3.1-8B-Instruct --max-num-seqs 32 --port 8000"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the log, due so many emulated seconds after the start.

    ``listens``: the engine listens from here on.
    """

    at_s: float
    text: str
    listens: bool = False


@dataclass(frozen=True, slots=True)
class Start:
    """A cold start: when it serves, in emulated seconds, and what it says until then."""

    ready_s: float
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Recipe:
    """All that is needed to run one engine. ``start`` None: it serves at once."""

    name: str
    spec: EngineSpec
    settings: Settings
    port: int
    start: Start | None


def make(settings: Settings, words: Sequence[str], environment: Mapping[str, str]) -> Recipe:
    """The recipe of an engine.

    ``words`` are the model and flags of ``vllm serve``, or any known engine's command line, or none
    where an image is named that needs none. Raises InputError where it could not start.
    """
    gpu = gpus.find(settings.gpu)
    launch = _launch(settings, words, environment, gpu)
    spec = assembly.from_launch(launch, gpu, settings.seed, settings.jitter)
    return Recipe(
        name=settings.name or spec.served_name.rsplit("/", 1)[-1],
        spec=spec,
        settings=settings,
        port=launch.port if settings.port is None else settings.port,
        start=_start(launch, gpu, settings.seed) if settings.start == "cold" else None,
    )


def is_command(words: Sequence[str], image: str = "") -> bool:
    """Whether the words are a whole command line of a known engine."""
    try:
        return launches.parse_spec({"image": image, "command": list(words)}, {}) is not None
    except errors.InputError:
        return True  # It is one, and it is wrong: whoever runs it will hear why.


def names_model(words: Sequence[str]) -> bool:
    """Whether the words of a ``vllm serve`` name their model. Raises UsageError."""
    flags = _parsed(words, lenient=True)
    return bool(flags.positionals) or "model" in flags.values


def _parsed(words: Sequence[str], *, lenient: bool) -> commandline.Flags:
    return arguments.parse(vllm.table(), words, vllm.PROGRAM, vllm.USAGE, lenient=lenient)


def _launch(
    settings: Settings, words: Sequence[str], environment: Mapping[str, str], gpu: gpus.Gpu
) -> launches.Launch:
    env = [{"name": name, "value": value} for name, value in environment.items()]
    container: dict[str, Any] = {"name": "engine", "image": settings.image, "env": env}
    if words and is_command(words, settings.image):
        container["command"] = list(words)
    elif words and words[0].rpartition("/")[2] == triton.TRITONSERVER:
        raise errors.InputError(
            "tritonserver serves no model that is known: name the folder of its repository after "
            "one, such as --model-repository=/models/llama-3.1-8b, or set MODEL_ID"
        )
    elif words or not settings.image:
        if not names_model(words):
            _parsed(words, lenient=False)  # what vLLM's own parser refuses is told before
            # vLLM would serve a model of its own choice, which nobody means.
            raise errors.InputError(f"the model's name is missing; for example: {EXAMPLE}")
        # Read apart from the others, these are the server's all the same: its log tells them.
        port = [] if settings.port is None else [f"--port={settings.port}"]
        container["command"] = ["vllm", "serve", *words, f"--host={settings.host}", *port]
    found = launches.parse(container, _annotations(settings), gpu)
    if found is None:
        raise errors.InputError(
            f"image {settings.image!r} is of no engine that is known; "
            "write its command line after --"
        )
    return found


def _annotations(settings: Settings) -> dict[str, str]:
    annotations = settings.annotations()
    path = settings.model_config_file
    if path is not None:
        try:
            config = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise errors.InputError(f"{path} cannot be read as JSON: {error}") from error
        if not isinstance(config, dict):
            raise errors.InputError(
                f"{path} must hold a JSON object, as a model's config.json does"
            )
        shape = models.from_config(config, path.absolute().parent.name).to_shape()
        annotations[names.MODEL_SHAPE] = json.dumps(shape)
    return annotations


def _start(launch: launches.Launch, gpu: gpus.Gpu, seed: int) -> Start:
    """The engine's own part of a cold start: weights from storage, then warm-up."""
    cache = nodefacts.CacheState(image_present=True)
    planned = coldstart.plan(launch, gpu, nodefacts.node_rates({}), cache)
    parts = (
        (wire.Phase.WEIGHT_LOAD, planned.weights.duration_s),
        (wire.Phase.WARM_UP, planned.warm_up_s),
    )
    said = logs.of(launch.engine, launch.options).start_lines(launch, planned, gpu)
    lines: list[Line] = []
    begins_s = 0.0
    for phase, planned_s in parts:
        takes_s = planned_s * jitter.factor(str(seed), phase)
        due = (line for line in said if line.phase is phase)
        lines += [
            Line(
                begins_s + line.share * takes_s,
                startlines.timed(line.text, takes_s),
                line.listens,
            )
            for line in due
        ]
        begins_s += takes_s
    return Start(begins_s, tuple(sorted(lines, key=lambda line: line.at_s)))
