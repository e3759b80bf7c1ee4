"""What the catalogue says of a spec: does it fit, how many slots, how long a cold start."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from modelserve import errors
from modelserve.api import names, quantities
from modelserve.api import spec as specs
from modelserve.catalog import architecture, gpus, images, models
from modelserve.decide import coldstart, contradictions, fit, nodefacts
from modelserve.engines import context, installed, launch, steplaw, types

# Before anything is measured: the mean of the mean lengths of 23 public workloads, each counted
# once (both Azure traces of 2023, Mooncake's conversations, twenty clients of ServeGen). The mean,
# not the median (822 and 64): replicas needed grow in proportion, and few long ones need most.
TYPICAL_PROMPT_TOKENS = 1457
TYPICAL_OUTPUT_TOKENS = 294

# The node a prediction falls back on: the catalogue's rates, nothing cached.
NO_ANNOTATIONS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a spec cannot be served: the condition's reason, and a sentence with the mend."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Assessment:
    """A spec against the catalogue. ``service_s`` and cold starts are emulated seconds."""

    launch: types.Launch
    gpu: gpus.Gpu
    fit: fit.Fit
    slots: int
    service_s: float

    @property
    def problem(self) -> Problem | None:
        """Why the model cannot run on these GPUs, if so."""
        if self.fit.fits:
            return None
        return Problem(str(self.fit.reason), self.fit.message)

    def cold_start(
        self,
        annotations: Mapping[str, str] = NO_ANNOTATIONS,
        image_present: bool = False,
        listed: Iterable[Mapping[str, Any]] = (),
        provisioning_s: float = 0.0,
    ) -> coldstart.ColdStart:
        """The predicted parts on a node with these annotations; broken ones count as missing.

        ``listed`` is the node's ``status.images``: layers that others of them have are there.
        """
        try:
            rates = nodefacts.node_rates(annotations)
        except errors.QuantityError:
            rates = nodefacts.node_rates(NO_ANNOTATIONS)
        warm = nodefacts.is_warm(self.launch, annotations)
        there = frozenset[str]() if image_present else nodefacts.listed_layers(listed)
        cache = nodefacts.CacheState(image_present, page_cached=warm, layers=there)
        planned = coldstart.plan(self.launch, self.gpu, rates, cache)
        return coldstart.predict(planned, provisioning_s)


def assess(name: str, spec: specs.ModelServeSpec) -> Assessment | Problem:
    """Look everything up. A Problem if something is unknown, or does not fit."""
    try:
        model = model_of(spec)
    except errors.UnknownName as error:
        return Problem(
            "UnknownModel", f"{error}; for any other, describe its shape in model.custom"
        )
    except errors.InputError as error:
        return Problem("InvalidModel", str(error))
    try:
        gpu = gpus.find(spec.gpu.product)
    except errors.UnknownName as error:
        return Problem("UnknownGPU", str(error))
    try:
        wanted = launch_spec(name, spec)
        resolved = launch.resolve(wanted)
    except errors.UnknownName as error:
        return Problem("UnknownStorageClass", str(error))
    except errors.InputError as error:
        return Problem("InvalidSpec", str(error))
    found = _assess(spec, model, gpu, resolved)
    return found.problem or _contradiction(spec, wanted) or found


def model_of(spec: specs.ModelServeSpec) -> architecture.Model:
    """The catalogue's model, or the one that ``custom`` describes. Raises InputError."""
    custom = spec.model.custom
    shape = custom.model_dump(mode="json", by_alias=True, exclude_none=True) if custom else {}
    return models.from_shape(spec.model.name, shape) if shape else models.find(spec.model.name)


def max_model_tokens(spec: specs.ModelServeSpec) -> int:
    """The longest prompt and answer together; of a model nobody knows, what any would have."""
    if spec.engine.max_model_length is not None:
        return spec.engine.max_model_length
    try:
        return context.default_tokens(model_of(spec))
    except errors.InputError:
        return context.DEFAULT_TOKENS


def launch_spec(name: str, spec: specs.ModelServeSpec) -> types.LaunchSpec:
    """What the engine is asked to do. Raises InputError, UnknownName among them."""
    engine, cold_start, storage = spec.engine, spec.cold_start, spec.storage
    read, size = storage.read_bandwidth, cold_start.image_size
    amd = gpus.find(spec.gpu.product).amd
    model = model_of(spec)
    return types.LaunchSpec(
        engine=engine.type,
        model=model,
        served_name=spec.model.served_name or name,
        tensor_parallel=spec.gpu.tensor_parallel,
        quantization=spec.model.quantization,
        max_sequences=engine.batching.max_sequences,
        max_batched_tokens=engine.batching.max_batched_tokens,
        max_model_tokens=engine.max_model_length or context.default_tokens(model),
        port=names.ENGINE_PORT,
        image=engine.image or images.of_engine(engine.type, amd).reference,
        batching=engine.batching.mode,
        queue_limit=engine.queue_limit,
        storage_class=storage.class_,
        read_bytes_per_s=quantities.parse_rate(read) if read else None,
        loader=storage.loader,
        image_bytes=quantities.parse_bytes(size) if size else None,
        warm_up_s=cold_start.warm_up_seconds,
        extra_args=tuple(engine.args),
    )


def _contradiction(spec: specs.ModelServeSpec, wanted: types.LaunchSpec) -> Problem | None:
    rendered = launch.render(wanted)
    lacks = installed.lack({"image": rendered.image, "command": list(rendered.command)})
    if lacks is not None:
        told = (
            f"engine.image {wanted.image} has {lacks.holds}, not {lacks.engine}: take it out, or "
            f"set engine.type to {lacks.holds}"
        )
        return Problem("ImageLacksEngine", told)
    sentence = contradictions.find(spec, wanted)
    return Problem("ArgumentsContradictSpec", sentence) if sentence else None


def _assess(
    spec: specs.ModelServeSpec,
    model: architecture.Model,
    gpu: gpus.Gpu,
    resolved: types.Launch,
) -> Assessment:
    size, quantization = spec.gpu.tensor_parallel, spec.model.quantization
    longest = resolved.max_model_tokens
    memory = (resolved.gpu_memory_utilization, resolved.engine, resolved.kv_dtype_bytes)
    env = {each.name: each.value for each in spec.engine.env}
    beyond = context.is_allowed(spec.engine.type, env)
    verdict = fit.fit(model, gpu, size, quantization, longest, *memory, beyond_context=beyond)
    prompt = max(1, min(TYPICAL_PROMPT_TOKENS, longest * 4 // 5))
    output = max(1, min(TYPICAL_OUTPUT_TOKENS, longest - prompt))
    wanted = spec.gateway.slots_per_replica or spec.engine.batching.max_sequences
    slots = max(1, verdict.slots(wanted, prompt + output))
    law = steplaw.StepLaw.of_launch(resolved, gpu)
    return Assessment(resolved, gpu, verdict, slots, law.service_s(prompt, output, slots))
