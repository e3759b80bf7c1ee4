"""From a pod's container to the engine that serves in its place."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from modelserve.api.spec import BatchingMode, EngineType
from modelserve.catalog import gpus, images
from modelserve.decide import coldstart, nodefacts
from modelserve.engines import generations, kv, launch, profiles, steplaw, types, vllm
from modelserve.errors import InputError
from servelab.engine.core.config import BLOCK_TOKENS, CoreConfig, Policy
from servelab.engine.core.laws import StepLaw

# Spread of a step's duration around the law; a choice: steps of real engines vary by some per cent.
STEP_JITTER = 0.02
# Its --priority-scheduling-preemption-threshold, of 0.5.23.
SGLANG_PRIORITY_GAP = 10


class KVShortage(InputError):
    """The KV cache has no room for a request of the engine's maximum length."""


@dataclass(frozen=True, slots=True)
class Rules:
    """How an engine schedules if it is not told otherwise, and tokens in a block of its KV cache.

    ``mixes`` names the option that lets prompts and decoding share steps, where that is off.
    """

    policy: Policy = Policy.VLLM
    block_tokens: int = BLOCK_TOKENS
    prefix_caching: bool = True
    divides_prompts: bool = True
    mixes: str | None = None


# SGLang's cache is kept by the token; blocks that large are a choice, for the sake of speed.
RULES: Mapping[EngineType, Rules] = {
    EngineType.VLLM: Rules(),
    EngineType.SGLANG: Rules(Policy.SGLANG, mixes="enable-mixed-chunk"),
    EngineType.TENSORRT_LLM: Rules(Policy.NO_EVICT, block_tokens=32, divides_prompts=False),
    EngineType.TRITON: Rules(Policy.NO_EVICT, block_tokens=32, prefix_caching=False),
    EngineType.NIM: Rules(Policy.NO_EVICT, block_tokens=32, prefix_caching=False),
    EngineType.TGI: Rules(),
}


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """All that makes one engine what it is."""

    served_name: str
    model_name: str
    config: CoreConfig
    law: StepLaw
    gpu_memory_utilization: float
    seed: int
    profile: types.Profile = vllm.PROFILE  # of the engine it stands in for
    options: tuple[tuple[str, str], ...] = ()  # of this engine alone, by its own names
    image: str = ""
    warm_up: tuple[coldstart.WarmUpPart, ...] = ()  # as it is planned


def build(
    container: Mapping[str, Any],
    annotations: Mapping[str, str],
    gpu_product: str,
    seed: int,
    jitter: float = STEP_JITTER,
) -> EngineSpec:
    """The engine of a container. Raises InputError where the real one would not start."""
    gpu = gpus.find(gpu_product)
    parsed = launch.parse(container, annotations, gpu)
    if parsed is None:
        raise InputError(f"container {container.get('name')!r} runs no engine that is known")
    return from_launch(parsed, gpu, seed, jitter)


def from_launch(
    parsed: launch.Launch, gpu: gpus.Gpu, seed: int, jitter: float = STEP_JITTER
) -> EngineSpec:
    """The engine of a launch. Raises InputError where model and context do not fit the GPUs."""
    law = steplaw.StepLaw.of_launch(parsed, gpu)
    config = _config(parsed, gpu, law.first_token_constant_s, jitter)
    return EngineSpec(
        served_name=parsed.served_name,
        model_name=parsed.model.name,
        config=config,
        law=law,
        gpu_memory_utilization=parsed.gpu_memory_utilization,
        seed=seed,
        profile=profiles.of(parsed.engine),
        options=parsed.options,
        image=parsed.image,
        warm_up=_warm_up(parsed, gpu),
    )


def _config(parsed: launch.Launch, gpu: gpus.Gpu, front_s: float, jitter: float) -> CoreConfig:
    """The limits and rules of a launch."""
    rules, options = RULES[parsed.engine], dict(parsed.options)
    told = options.get("enable-chunked-prefill")
    divides = rules.divides_prompts if told is None else told != "false"
    sequences, batched_tokens = parsed.max_sequences, parsed.max_batched_tokens
    if parsed.engine is EngineType.VLLM and not divides:
        # Of itself vLLM makes a step as long as its longest prompt then, and takes no less.
        batched_tokens = max(batched_tokens, parsed.max_model_tokens)
    packs = options.get("capacity-scheduler-policy") == "MAX_UTILIZATION"
    blocks = _kv_blocks(parsed, gpu, rules.block_tokens)
    return CoreConfig(
        max_sequences=min(sequences, int(options.get("max-num-active-seqs") or sequences)),
        max_batched_tokens=batched_tokens,
        max_model_tokens=parsed.max_model_tokens,
        kv_blocks=blocks,
        block_size=rules.block_tokens,
        batching=parsed.batching,
        queue_limit=parsed.queue_limit,
        jitter=jitter,
        front_s=front_s,
        prefix_caching=parsed.prefix_caching and rules.prefix_caching,
        policy=Policy.MAX_UTILIZATION if packs else rules.policy,
        chunked_prefill=divides,
        mixed_chunk=rules.mixes in options,
        long_prefill_tokens=int(options.get("long-prefill-token-threshold", 0)),
        fair_prefills=options.get("long-prefill-token-threshold-adaptive", "false") != "false",
        reserve_prompts=options.get("scheduler-reserve-full-isl") != "false",
        spare_blocks=int(float(options.get("watermark", 0.0)) * blocks),
        tables=kv.tables(parsed).windows,
        lag=generations.lags(parsed.engine, images.split(parsed.image)[1], options)
        and parsed.batching is BatchingMode.CONTINUOUS,
        prefill_interval=int(options.get("prefill-schedule-interval", 1)),
        by_priority=options.get("scheduling-policy") == "priority"
        or "enable-priority-scheduling" in options,
        priority_gap=_priority_gap(parsed.engine, options),
        second_pool=kv.second_pool(parsed, gpu),
    )


def _priority_gap(engine: EngineType, options: Mapping[str, str]) -> int | None:
    """How far behind one who runs must be to stop for one who waits; None if nobody does."""
    asked = "enable-priority-scheduling" in options
    if engine is not EngineType.SGLANG or not asked or "disable-priority-preemption" in options:
        return None
    return int(options.get("priority-scheduling-preemption-threshold", SGLANG_PRIORITY_GAP))


def _warm_up(parsed: launch.Launch, gpu: gpus.Gpu) -> tuple[coldstart.WarmUpPart, ...]:
    cache = nodefacts.CacheState(image_present=True)
    return coldstart.plan(parsed, gpu, nodefacts.node_rates({}), cache).warm_up


def _kv_blocks(parsed: launch.Launch, gpu: gpus.Gpu, block_tokens: int) -> int:
    tokens = kv.capacity_of_launch(parsed, gpu)
    if tokens < parsed.max_model_tokens:
        raise KVShortage(
            f"{parsed.model.name} on {parsed.tensor_parallel} × {gpu.title} has room for {tokens} "
            f"tokens of KV cache, less than one request of the maximum length "
            f"{parsed.max_model_tokens}: lower --max-model-len or use more GPUs"
        )
    return kv.pool_blocks(parsed, gpu, block_tokens)
