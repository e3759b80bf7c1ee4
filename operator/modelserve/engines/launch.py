"""The contract between a pod and its engine: a launch as a container's words, and back.

``render`` writes what the real engine would take; ``parse`` reads any container of a known engine,
whoever wrote it. ``modelserve.dev/…`` annotations carry what a real engine finds around it.
"""

import dataclasses
import json
import re
from collections.abc import Mapping
from typing import Any, TypeVar

from modelserve import errors
from modelserve.api import names, quantities
from modelserve.catalog import gpus, images, models, storage
from modelserve.engines import commandline, context, kv, profiles, types, vllm
from modelserve.engines.types import Launch as Launch
from modelserve.engines.types import LaunchSpec as LaunchSpec
from modelserve.engines.types import Rendered as Rendered

_Word = TypeVar("_Word", types.BatchingMode, types.Loader, types.Quantization)

# Endings of checkpoint names that say how the weights are stored.
_QUANTISED_NAME = re.compile(
    r"[-_](?:(?P<fp8>fp8(?:-(?:dynamic|kv))?)|awq(?:-int4)?|gptq(?:-int4)?|int4|4bit"
    r"|w4a16|nvfp4|bnb-4bit)$",
    re.IGNORECASE,
)


def render(spec: LaunchSpec) -> Rendered:
    """The container and annotations of a launch."""
    words = profiles.module(spec.engine).render(spec)
    return Rendered(
        image=spec.image,
        command=words.command,
        args=words.args,
        env=words.env,
        annotations=_annotations(spec, words.limits),
    )


def parse(
    container: Mapping[str, Any],
    annotations: Mapping[str, str],
    gpu: gpus.Gpu | None = None,
) -> Launch | None:
    """The launch a pod's container stands for, or None if it is no known engine.

    ``gpu`` settles the defaults that engines take from their GPU. Raises InputError where it is an
    engine that could not start as written: an unknown model, an annotation that cannot be read.
    """
    spec = parse_spec(container, annotations, gpu)
    return None if spec is None else _fitted(resolve(spec), gpu)


def written(container: Mapping[str, Any], annotations: Mapping[str, str]) -> str:
    """What a launch is read from, as JSON: [container, annotations], one for pods that are alike.

    Mounts are left out: they say nothing of an engine, and that of a pod's token has its own name.
    """
    read = {name: value for name, value in container.items() if name != "volumeMounts"}
    return json.dumps([read, dict(annotations)])


def _fitted(found: Launch, gpu: gpus.Gpu | None) -> Launch:
    """With ``--max-model-len auto``, the longest that the KV cache has room for."""
    if gpu is None or vllm.AUTO_LENGTH not in found.options:
        return found
    room_tokens = max(1, kv.longest_tokens(found, gpu))
    return dataclasses.replace(found, max_model_tokens=min(found.max_model_tokens, room_tokens))


def parse_spec(
    container: Mapping[str, Any],
    annotations: Mapping[str, str],
    gpu: gpus.Gpu | None = None,
) -> LaunchSpec | None:
    """As ``parse``, before the catalogue's sizes are filled in."""
    seen_container = commandline.read(container)
    for engine in profiles.MODULES:
        flags = engine.recognise(seen_container)
        if flags is not None:
            seen = engine.read(flags, seen_container.env)
            return _spec(engine, seen, seen_container, annotations, gpu)
    return None


def resolve(spec: LaunchSpec) -> Launch:
    """The launch with image sizes and storage class from the catalogue. Raises UnknownName."""
    known = images.find(spec.image) or images.of_engine(spec.engine)
    compressed = spec.image_bytes if spec.image_bytes is not None else known.compressed_bytes
    storage_class = spec.storage_class
    if storage_class is None and spec.read_bytes_per_s is None:
        storage_class = storage.DEFAULT
    return Launch(
        engine=spec.engine,
        model=spec.model,
        served_name=spec.served_name,
        tensor_parallel=spec.tensor_parallel,
        quantization=spec.quantization,
        max_sequences=spec.max_sequences,
        max_batched_tokens=spec.max_batched_tokens,
        max_model_tokens=spec.max_model_tokens,
        port=spec.port,
        image=spec.image,
        image_bytes=compressed,
        image_unpacked_bytes=round(compressed * known.unpacked_bytes / known.compressed_bytes),
        image_largest_layer_share=known.largest_layer_share,
        batching=spec.batching,
        queue_limit=spec.queue_limit,
        storage_class=storage.find(storage_class) if storage_class else None,
        read_bytes_per_s=spec.read_bytes_per_s,
        loader=spec.loader,
        warm_up_s=spec.warm_up_s,
        gpu_memory_utilization=spec.gpu_memory_utilization,
        enforce_eager=spec.enforce_eager,
        prefix_caching=spec.prefix_caching,
        kv_dtype_bytes=spec.kv_dtype_bytes,
        options=spec.options,
    )


def split_quantised(name: str) -> tuple[str, types.Quantization | None]:
    """A checkpoint's base name and the quantisation its ending says: ``…-AWQ``, ``…-FP8``."""
    match = _QUANTISED_NAME.search(name)
    if match is None:
        return name, None
    found = types.Quantization.FP8 if match["fp8"] else types.Quantization.INT4
    return name[: match.start()], found


def _annotations(spec: LaunchSpec, limits: Mapping[str, str | int]) -> dict[str, str]:
    """What a real engine finds in its surroundings, as annotations of the pod."""
    rate = spec.read_bytes_per_s
    image, warm_up = spec.image_bytes, spec.warm_up_s
    model = spec.model
    optional = {
        names.STORAGE_CLASS: spec.storage_class,
        names.READ_BANDWIDTH: quantities.format_rate(rate) if rate is not None else None,
        names.LOADER: spec.loader.value,
        names.IMAGE_SIZE: _exact_bytes(image) if image is not None else None,
        names.WARM_UP_SECONDS: f"{warm_up:.12g}" if warm_up is not None else None,
        names.BATCHING: spec.batching.value,
        names.QUEUE_LIMIT: str(spec.queue_limit) if spec.queue_limit is not None else None,
        names.MODEL_SHAPE: None if model.in_catalogue else json.dumps(model.to_shape()),
        names.ENGINE_LIMITS: json.dumps(limits, sort_keys=True) if limits else None,
    }
    return {name: value for name, value in optional.items() if value is not None}


def _exact_bytes(n_bytes: int) -> str:
    """A size that reads back as the same number, in the largest unit that divides it."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if n_bytes and n_bytes % size == 0:
            return f"{n_bytes // size}{unit}"
    return f"{n_bytes}B"


def _spec(
    engine: profiles.EngineModule,
    seen: types.Seen,
    container: commandline.Container,
    annotations: Mapping[str, str],
    gpu: gpus.Gpu | None,
) -> LaunchSpec:
    seen = _with_limits(seen, annotations)
    title, defaults = engine.PROFILE.title, engine.defaults(gpu)
    if not seen.model:
        raise errors.InputError(f"the {title} container names no model; add its argument for it")
    model, named = _model(seen.model, annotations)
    kind, image = engine.PROFILE.engine, container.image
    longest = seen.max_model_tokens or model.max_context_tokens
    read = annotations.get(names.READ_BANDWIDTH)
    size = annotations.get(names.IMAGE_SIZE)
    batching, loader = annotations.get(names.BATCHING), annotations.get(names.LOADER)
    queue_limit = _number(annotations, names.QUEUE_LIMIT)
    return LaunchSpec(
        engine=kind,
        model=model,
        served_name=seen.served_name or seen.model,
        tensor_parallel=seen.tensor_parallel or 1,
        quantization=seen.quantization or named or types.Quantization.NONE,
        max_sequences=seen.max_sequences or defaults.max_sequences,
        max_batched_tokens=seen.max_batched_tokens or defaults.max_batched_tokens,
        max_model_tokens=context.taken(kind, model, longest, container.env),
        port=seen.port or defaults.port,
        image=image or images.of_engine(kind).reference,
        batching=_word(types.BatchingMode, names.BATCHING, batching or "continuous"),
        queue_limit=int(queue_limit) if queue_limit is not None else seen.queue_limit,
        storage_class=annotations.get(names.STORAGE_CLASS),
        read_bytes_per_s=quantities.parse_rate(read) if read else None,
        loader=_word(types.Loader, names.LOADER, loader or seen.loader or "default"),
        image_bytes=quantities.parse_bytes(size) if size else None,
        warm_up_s=_number(annotations, names.WARM_UP_SECONDS),
        gpu_memory_utilization=seen.gpu_memory_utilization or defaults.gpu_memory_utilization,
        enforce_eager=seen.enforce_eager,
        prefix_caching=seen.prefix_caching,
        kv_dtype_bytes=seen.kv_dtype_bytes,
        options=seen.options,
    )


def _model(
    name: str, annotations: Mapping[str, str]
) -> tuple[models.Model, types.Quantization | None]:
    """The model under the name the container uses, and the quantisation its name says."""
    shape = annotations.get(names.MODEL_SHAPE)
    base, named = split_quantised(name)
    if shape:
        return models.from_shape(name, _json(names.MODEL_SHAPE, shape)), named
    try:
        return models.find(name), named
    except errors.UnknownName:
        if named is None:
            raise
        return dataclasses.replace(models.find(base), name=name), named


def _with_limits(seen: types.Seen, annotations: Mapping[str, str]) -> types.Seen:
    """Fills in from the engine-limits annotation what the container does not say."""
    text = annotations.get(names.ENGINE_LIMITS)
    if not text:
        return seen
    limits = _json(names.ENGINE_LIMITS, text)
    quantization = limits.get("quantization")
    word = (
        _word(types.Quantization, names.ENGINE_LIMITS, str(quantization)) if quantization else None
    )
    counts = {
        key: int(limits[key])
        for key in ("tensorParallel", "maxSequences", "maxBatchedTokens", "maxModelLength")
        if isinstance(limits.get(key), int) and limits[key] > 0
    }
    return dataclasses.replace(
        seen,
        served_name=seen.served_name or limits.get("servedName"),
        quantization=seen.quantization or word,
        tensor_parallel=seen.tensor_parallel or counts.get("tensorParallel"),
        max_sequences=seen.max_sequences or counts.get("maxSequences"),
        max_batched_tokens=seen.max_batched_tokens or counts.get("maxBatchedTokens"),
        max_model_tokens=seen.max_model_tokens or counts.get("maxModelLength"),
    )


def _json(name: str, text: str) -> Mapping[str, Any]:
    try:
        document = json.loads(text)
    except ValueError as error:
        raise errors.InputError(f"annotation {name} is no JSON: {error}") from error
    if not isinstance(document, dict):
        raise errors.InputError(f"annotation {name} must be a JSON object, such as {{}}")
    return document


def _number(annotations: Mapping[str, str], name: str) -> float | None:
    text = annotations.get(name)
    if text is None or text == "":
        return None
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e9:
        raise errors.InputError(f"annotation {name} is {text!r}; it must be a number from 0 on")
    return number


def _word(kind: type[_Word], name: str, word: str) -> _Word:
    try:
        return kind(word)
    except ValueError as error:
        known = ", ".join(kind)
        raise errors.InputError(f"annotation {name} is {word!r}; it must be {known}") from error
