"""Runs one measured point through the simulated engine: same core, same law, virtual time."""

import dataclasses
import random
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from modelserve.catalog import constants, gpus, models
from modelserve.engines import generations, kv, profiles, steplaw
from modelserve.engines.generations import Generation
from modelserve.engines.types import EngineType, Quantization
from modelserve.errors import InputError, ModelServeError
from servelab.engine import assembly
from servelab.engine.core.config import BLOCK_TOKENS, CoreConfig
from servelab.engine.core.stepping import EngineCore
from servelab.validation import conditions, loads, points
from servelab.validation.points import Point

# The figure a kind is scored by; its other figures are reported beside it.
METRIC_OF_KIND: Mapping[str, str] = {
    "loaded": "tpot_ms",
    "decode_b1": "tpot_ms",
    "prefill_b1": "ttft_ms",
    "batch_latency": "latency_s",
    "saturation": "output_tokens_s",
    "tp_scaling": "output_tokens_s",
    "online_qps": "tpot_ms",
    "kv_capacity": "kv_tokens",
}
_ENGINES: tuple[tuple[str, EngineType], ...] = (
    ("vllm", EngineType.VLLM),
    ("sglang", EngineType.SGLANG),
    ("trtllm", EngineType.TENSORRT_LLM),
    ("tensorrt", EngineType.TENSORRT_LLM),
    ("triton", EngineType.TRITON),
    ("tgi", EngineType.TGI),
    ("nim", EngineType.NIM),
)
_WEIGHTS: Mapping[str, Quantization] = {
    "bf16": Quantization.NONE,
    "fp16": Quantization.NONE,
    "mxfp4": Quantization.NONE,
    "fp8": Quantization.FP8,
    "int8": Quantization.FP8,  # one byte per parameter of the linear layers, as fp8
    "int4": Quantization.INT4,
    "nvfp4": Quantization.INT4,  # as many bits, but multiplied by fp4 units
}
# Their fp8 and fp4 checkpoints carry scales for an fp8 KV cache, and these engines use it.
_FP8_KV_ENGINES = (EngineType.TENSORRT_LLM, EngineType.TRITON, EngineType.NIM)
_FP8_KV_WEIGHTS = ("fp8", "nvfp4")
# Requests sent one after the other where a median is asked for.
ALONE_REQUESTS = 16
# "All at once" without a number: so many times what runs at the same time, which is several waves.
WAVES = 4
_FULL_LOAD = ("saturation", "tp_scaling")
MOST_REQUESTS = 8192
MOST_IN_FLIGHT = 10_000
LONGEST_TOKENS = 4_000_000
_IN_FLIGHT = ("concurrency", "batch")


class CannotRun(ModelServeError):
    """The point lacks something, or names what the emulator does not know."""


@dataclass(frozen=True, slots=True)
class Bench:
    """An engine to measure at: what it is made of, and how its requests are drawn."""

    config: CoreConfig
    law: steplaw.StepLaw
    source: conditions.Conditions

    def core(self) -> EngineCore:
        """A fresh, idle one."""
        return EngineCore(self.config, self.law, random.Random(0))

    @property
    def kv_tokens(self) -> int:
        """Tokens its KV cache holds."""
        return self.config.kv_blocks * self.config.block_size


def engine_type(name: str) -> EngineType | None:
    """The engine a point's free text names; None if it is none of ours."""
    word = name.lower()
    return next((engine for prefix, engine in _ENGINES if word.startswith(prefix)), None)


def simulate(point: Point) -> dict[str, float]:
    """The point's metrics as the simulated engine gives them. Raises CannotRun with the reason."""
    metric = METRIC_OF_KIND.get(point.kind)
    if point.problem:
        raise CannotRun(point.problem)
    if metric is None:
        raise CannotRun(f"kind {point.kind} is not about a running engine")
    if point.quality == "C":
        raise CannotRun("quality C: the measurement itself is doubtful")
    if metric not in point.metrics:
        raise CannotRun(f"has no {metric}")
    try:
        return _RUNS[point.kind](point, bench(point))
    except InputError as error:
        raise CannotRun(str(error)) from error


def bench(point: Point) -> Bench:
    """The engine a point was measured at, under its source's conditions. Raises CannotRun."""
    engine = engine_type(point.engine)
    if engine is None:
        raise CannotRun(f"engine {point.engine or '(none)'!r} is not emulated")
    if point.weights not in _WEIGHTS:
        raise CannotRun(f"weights {point.weights or '(none)'!r} are no format of the emulator")
    model, gpu = models.find(point.model), gpus.find(point.gpu)
    quantization = _WEIGHTS[point.weights]
    source = conditions.of(point.source)
    generation = generations.of(engine, point.engine, asynchronous=source.asynchronous)
    fp8_kv = source.has_fp8_kv(point.weights, point.kind)
    fp8_kv = fp8_kv or (engine in _FP8_KV_ENGINES and point.weights in _FP8_KV_WEIGHTS)
    kv_bytes = 1 if fp8_kv else 2
    room = kv.capacity_tokens(
        model,
        gpu,
        point.tensor_parallel,
        quantization,
        engine=engine,
        kv_dtype_bytes=kv_bytes,
    )
    if room < BLOCK_TOKENS:
        raise CannotRun(f"{model.name} does not fit {point.tensor_parallel} × {gpu.title}")
    law = steplaw.StepLaw.of(
        model,
        gpu,
        point.tensor_parallel,
        quantization,
        engine,
        kv_bytes,
        generation=generation,
        fp4_units=point.weights == steplaw.FP4_FORMAT,
    )
    config = _config(point, engine, generation, source, room)
    # What was measured did run, whatever the context of the model.
    longest = max(model.max_context_tokens, config.max_model_tokens)
    front_s = law.first_token_constant_s
    front_s -= 0.0 if source.http else constants.load().http_front_s
    config = dataclasses.replace(config, max_model_tokens=longest, front_s=front_s)
    return Bench(config, law, source)


def _config(
    point: Point,
    engine: EngineType,
    generation: Generation,
    source: conditions.Conditions,
    room_tokens: int,
) -> CoreConfig:
    """The limits that the source set, or else the engine's own of that generation."""
    defaults, rules = profiles.module(engine).defaults(gpus.find(point.gpu)), assembly.RULES[engine]
    sequences, batched = defaults.max_sequences, defaults.max_batched_tokens
    divides = rules.divides_prompts or source.divides_prompts
    if generation is Generation.VLLM_V0:
        chat = source.chat(point.input_tokens or 0)
        longest = chat.max_model_tokens if chat is not None else source.max_model_tokens
        sequences, batched, divides = 256, max(2048, longest or _longest(point)), False
    batched = source.max_batched_tokens.get(engine, batched)
    sequences = max(sequences, _in_flight(point))
    if source.tuned_sequences is not None and point.kind in _FULL_LOAD:
        sequences = min(source.tuned_sequences, room_tokens // max(1, sum(_tokens(point))))
    return CoreConfig(
        max_sequences=max(1, sequences),
        # What was measured did run, so a prompt that is not divided fits a step.
        max_batched_tokens=batched if divides else max(batched, _longest(point)),
        max_model_tokens=_longest(point),
        kv_blocks=room_tokens // rules.block_tokens,
        block_size=rules.block_tokens,
        policy=rules.policy,
        chunked_prefill=divides,
        lag=generation is Generation.VLLM_ASYNC,
    )


def _in_flight(point: Point) -> int:
    """A closed loop or batch is run with a batch limit that lets all of it in."""
    return _number(point, "concurrency", "batch") or 1


def _longest(point: Point) -> int:
    """Tokens of the longest request that its conditions may draw."""
    chat = conditions.of(point.source).chat(point.input_tokens or 0)
    if chat is not None:
        return chat.max_model_tokens
    return (point.input_tokens or 0) + (point.output_tokens or 0) + 1


def _number(point: Point, *keys: str) -> int | None:
    for key in keys:
        value = point.load.get(key)
        if points.is_number(value) and value >= 1:
            if value > MOST_IN_FLIGHT and key in _IN_FLIGHT:
                raise CannotRun(f"load.{key} is {value}, more than {MOST_IN_FLIGHT}")
            return int(value)
    return None


def _tokens(point: Point) -> tuple[int, int]:
    if point.input_tokens is None or point.output_tokens is None:
        raise CannotRun("has no input or output length")
    if max(point.input_tokens, point.output_tokens) > LONGEST_TOKENS:
        raise CannotRun(f"requests are longer than {LONGEST_TOKENS} tokens")
    return point.input_tokens, point.output_tokens


def _lengths(point: Point, bench: Bench, count: int) -> loads.Lengths:
    return bench.source.lengths(*_tokens(point), count, random.Random(point.group))


def _latencies(seen: loads.Seen, *, mean_first_token: bool = False) -> dict[str, float]:
    per_token_s = seen.per_token_s()
    middle = statistics.fmean if mean_first_token else statistics.median
    found = {
        "ttft_ms": middle(seen.first_tokens_s()) * 1e3,
        "output_tokens_s": seen.output_tokens_per_s,
    }
    return {**found, "tpot_ms": statistics.median(per_token_s) * 1e3} if per_token_s else found


def _loaded(point: Point, bench: Bench) -> dict[str, float]:
    clients = _number(point, "concurrency")
    if clients is None:
        raise CannotRun("has no load.concurrency")
    lengths = _lengths(point, bench, clients * conditions.REQUESTS_PER_CLIENT)
    seen = loads.closed_loop(bench.core(), lengths, clients)
    return _latencies(seen, mean_first_token=bench.source.mean_first_token)


def _alone(point: Point, bench: Bench) -> dict[str, float]:
    chat = bench.source.chat(point.input_tokens or 0)
    lengths = _lengths(point, bench, ALONE_REQUESTS if chat is not None else 1)
    seen = loads.closed_loop(bench.core(), lengths, 1)
    found = _latencies(seen)
    if "tpot_ms" in found:
        found["output_tokens_s"] = 1e3 / found["tpot_ms"]
    return found


def _batch_latency(point: Point, bench: Bench) -> dict[str, float]:
    batch = _number(point, "batch")
    if batch is None:
        raise CannotRun("has no load.batch")
    end_s = loads.at_once(bench.core(), _lengths(point, bench, batch)).end_s
    return {"latency_s": end_s, "mean_step_ms": end_s / max(1, _tokens(point)[1]) * 1e3}


def _offline(point: Point, bench: Bench) -> dict[str, float]:
    slots = min(bench.config.slots, max(1, bench.kv_tokens // max(1, sum(_tokens(point)))))
    count = _number(point, "offline_requests", "requests")
    if count is None:
        waves = WAVES if bench.source.tuned_sequences is None else 1
        known = bench.source.requests.get(_tokens(point))
        count = known or waves * slots
    count = min(MOST_REQUESTS, count)
    return _latencies(loads.at_once(bench.core(), _lengths(point, bench, count)))


def _online(point: Point, bench: Bench) -> dict[str, float]:
    per_s = point.load.get("qps")
    count = min(MOST_REQUESTS, _number(point, "requests") or conditions.ONLINE_REQUESTS)
    if isinstance(per_s, str) and per_s.upper() == "INF":
        return _latencies(loads.at_once(bench.core(), _lengths(point, bench, count)))
    if not points.is_number(per_s) or per_s <= 0:
        raise CannotRun("has no load.qps")
    lengths = _lengths(point, bench, count)
    return _latencies(loads.open_loop(bench.core(), lengths, per_s, random.Random(point.group)))


def _kv_capacity(point: Point, bench: Bench) -> dict[str, float]:
    return {"kv_tokens": bench.kv_tokens, "blocks_of_16": bench.config.kv_blocks}


_RUNS: Mapping[str, Callable[[Point, Bench], dict[str, float]]] = {
    "loaded": _loaded,
    "decode_b1": _alone,
    "prefill_b1": _alone,
    "batch_latency": _batch_latency,
    "saturation": _offline,
    "tp_scaling": _offline,
    "online_qps": _online,
    "kv_capacity": _kv_capacity,
}
