"""How an engine reads its checkpoint: the loader its arguments name, and which rank reads what.

The ranks map the files and copy each its own shard, so together they read them once. With
Run:ai's streamer each reads all, unless ``distributed`` of the loader's configuration has them
divide it (vLLM 0.33, SGLang 0.5.23; off if not told); eager ones read every file whole, too.
Whoever prefetches has threads that fill the page cache ahead: vLLM 0.20 and later do so by
themselves on network file systems, TensorRT-LLM from 1.0 on everywhere.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from modelserve.api.spec import EngineType, Loader, Quantization
from modelserve.catalog import images
from modelserve.catalog.storage import Way
from modelserve.engines import commandline, generations, types

STREAMER = "runai_streamer"
# Options of a launch: the way that its arguments name, and that its ranks do not divide the files.
WAY = "weights-read"
UNDIVIDED = ("weights-undivided", "true")
_CONFIGURATION = "model-loader-extra-config"
_FORMATS: Mapping[str, Way] = {
    STREAMER: Way.STREAMING,
    "runai_streamer_sharded": Way.STREAMING,
    "tensorizer": Way.TENSORIZER,
    "fastsafetensors": Way.FASTSAFETENSORS,
    "instanttensor": Way.INSTANTTENSOR,
    "dummy": Way.DUMMY,
}
# Formats that are safetensors, to which a strategy applies.
_SAFETENSORS = frozenset({"auto", "hf", "safetensors", "mistral"})
_STRATEGIES: Mapping[str, Way] = {
    "lazy": Way.MAPPED,
    "eager": Way.EAGER,
    "torchao": Way.EAGER,
    "prefetch": Way.PREFETCH,
}
# These take objects as they are; all others' are downloaded first, by one process.
_FROM_OBJECTS = frozenset({Way.STREAMING, Way.TENSORIZER, Way.DUMMY})
_VLLM_PREFETCHES = (0, 20)


@dataclass(frozen=True, slots=True)
class Reading:
    """How weights are read, and how often by a replica: once, or once a rank."""

    way: Way
    times: int = 1


def render(spec: types.LaunchSpec) -> list[str]:
    """The arguments of a launch that streams. What is quantised at load has a loader of its own."""
    if spec.loader is not Loader.STREAMING or spec.quantization is Quantization.INT4:
        return []
    divided = [f'--{_CONFIGURATION}={{"distributed":true}}'] if spec.tensor_parallel > 1 else []
    return [f"--load-format={STREAMER}", *divided]


def loader(flags: commandline.Flags) -> Loader | None:
    """As the API names it, if a vLLM's or SGLang's arguments name one that does not map files."""
    quick = (Way.STREAMING, Way.TENSORIZER, Way.FASTSAFETENSORS, Way.INSTANTTENSOR)
    return Loader.STREAMING if _FORMATS.get(_format(flags)) in quick else None


def options(flags: commandline.Flags, ranks: int | None) -> tuple[tuple[str, str], ...]:
    """What a launch keeps of such a command line, with so many ranks."""
    named = _FORMATS.get(_format(flags)) or _strategy(flags)
    undivided = _format(flags) == STREAMER and not _divides(flags.text(_CONFIGURATION))
    way = ((WAY, named.value),) if named else ()
    return (*way, UNDIVIDED) if undivided and (ranks or 1) > 1 else way


def of(launch: types.Launch) -> Reading:
    """How a launch reads its weights from where they are."""
    told, where = dict(launch.options).get(WAY), launch.storage_class
    way = Way(told) if told else _by_itself(launch)
    if where is not None and where.objects and way not in _FROM_OBJECTS:
        return Reading(Way.MAPPED)
    whole = way is Way.EAGER or UNDIVIDED in launch.options
    return Reading(way, launch.tensor_parallel if whole else 1)


def _by_itself(launch: types.Launch) -> Way:
    if launch.loader is Loader.STREAMING:
        return Way.STREAMING
    where, tag = launch.storage_class, images.split(launch.image)[1]
    if launch.engine is EngineType.TENSORRT_LLM:
        compiled = generations.Generation.TENSORRT_LLM_COMPILED
        return Way.MAPPED if generations.of(launch.engine, tag) is compiled else Way.PREFETCH
    network = where is not None and where.network_file_system
    new = (generations.version(tag) or _VLLM_PREFETCHES) >= _VLLM_PREFETCHES
    return Way.PREFETCH if launch.engine is EngineType.VLLM and network and new else Way.MAPPED


def _format(flags: commandline.Flags) -> str:
    return (flags.text("load-format") or "auto").lower()


def _strategy(flags: commandline.Flags) -> Way | None:
    """How safetensors are read; SGLang has a switch for each."""
    if _format(flags) not in _SAFETENSORS:
        return Way.MAPPED
    if flags.on("weight-loader-disable-mmap"):
        return Way.EAGER
    if flags.on("weight-loader-prefetch-checkpoints"):
        return Way.PREFETCH
    return _STRATEGIES.get(flags.text("safetensors-load-strategy") or "")


def _divides(text: str | None) -> bool:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return False
    return isinstance(found, dict) and found.get("distributed") is True
