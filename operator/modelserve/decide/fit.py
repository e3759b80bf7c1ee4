"""Whether a model fits its GPUs, with the arithmetic in a sentence."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from modelserve.api import quantities
from modelserve.api.spec import EngineType, Quantization
from modelserve.catalog import gpus
from modelserve.catalog.architecture import Model
from modelserve.engines import context, kv

# What one replica on one node may use.
TENSOR_PARALLEL_SIZES = (1, 2, 4, 8)


class Reason(StrEnum):
    """Why a model fits or not; condition reasons of the API."""

    FITS = "Fits"
    LONGER_THAN_CONTEXT = "LongerThanContext"
    WEIGHTS_DO_NOT_FIT = "WeightsDoNotFit"
    NO_ROOM_FOR_KV_CACHE = "NoRoomForKVCache"
    QUANTIZATION_UNSUPPORTED = "QuantizationUnsupported"
    RANKS_ON_SLICES = "RanksOnSlices"


@dataclass(frozen=True, slots=True)
class Fit:
    """The verdict. ``needed_*`` are the weights; ``available_*`` what weights and KV share."""

    fits: bool
    reason: Reason
    message: str
    needed_bytes: int
    needed_bytes_per_gpu: int
    available_bytes: int
    available_bytes_per_gpu: int
    smallest_tensor_parallel: int | None
    kv_tokens: int

    def slots(self, max_sequences: int, typical_tokens: int) -> int:
        """Sequences of a typical length that run at once: the batch limit, or what the KV holds."""
        if not self.fits:
            return 0
        return max(1, min(max_sequences, self.kv_tokens // max(1, typical_tokens)))


class _Memory(NamedTuple):
    """What an engine makes of a GPU's memory, in the order in which ``kv`` takes it."""

    gpu_memory_utilization: float
    engine: EngineType
    kv_dtype_bytes: int


def fit(
    model: Model,
    gpu: gpus.Gpu,
    tensor_parallel: int,
    quantization: str = Quantization.NONE,
    max_model_tokens: int = 1,
    gpu_memory_utilization: float = 0.9,
    engine: EngineType = EngineType.VLLM,
    kv_dtype_bytes: int = 2,
    *,
    beyond_context: bool = False,
) -> Fit:
    """Whether weights and the KV cache of one sequence of ``max_model_tokens`` fit.

    ``beyond_context``: the engine was told to take more than the model's own context.
    """
    weights = model.weight_bytes(quantization)
    memory = _Memory(gpu_memory_utilization, engine, kv_dtype_bytes)
    room = kv.room_bytes(model, gpu, tensor_parallel, quantization, *memory[:2])
    usable = max(0, room + round(weights / tensor_parallel))
    tokens = kv.capacity_in_longest(
        model, gpu, tensor_parallel, quantization, *memory, max_model_tokens
    )
    enough = _smallest(model, gpu, quantization, max_model_tokens, memory)
    case = _Case(
        model,
        gpu,
        tensor_parallel,
        quantization,
        max_model_tokens,
        usable,
        enough,
        memory,
    )
    if not _supported(model, gpu, quantization):
        reason, message, enough = Reason.QUANTIZATION_UNSUPPORTED, case.unsupported(), None
    elif gpu.mig_profile and tensor_parallel > 1:
        reason, message = Reason.RANKS_ON_SLICES, case.ranks_on_slices()
    elif max_model_tokens > model.max_context_tokens and not beyond_context:
        reason, message, enough = Reason.LONGER_THAN_CONTEXT, case.longer_than_context(), None
    elif weights > usable * tensor_parallel:
        reason, message = Reason.WEIGHTS_DO_NOT_FIT, case.weights_do_not_fit()
    elif tokens < max_model_tokens:
        reason, message = Reason.NO_ROOM_FOR_KV_CACHE, case.no_room(tokens)
    else:
        reason, message = Reason.FITS, case.fits(tokens)
    return Fit(
        fits=reason is Reason.FITS,
        reason=reason,
        message=message,
        needed_bytes=weights,
        needed_bytes_per_gpu=-(-weights // tensor_parallel),
        available_bytes=usable * tensor_parallel,
        available_bytes_per_gpu=usable,
        smallest_tensor_parallel=enough,
        kv_tokens=tokens,
    )


def _supported(model: Model, gpu: gpus.Gpu, quantization: str) -> bool:
    return model.format(quantization) != "fp8" or gpu.supports_fp8()


def _smallest(
    model: Model,
    gpu: gpus.Gpu,
    quantization: str,
    max_model_tokens: int,
    memory: _Memory,
) -> int | None:
    for size in (1,) if gpu.mig_profile else TENSOR_PARALLEL_SIZES:
        tokens = kv.capacity_in_longest(model, gpu, size, quantization, *memory, max_model_tokens)
        if tokens >= max_model_tokens:
            return size
    return None


@dataclass(frozen=True, slots=True)
class _Case:
    """The numbers of one question, and the sentences that answer it."""

    model: Model
    gpu: gpus.Gpu
    tensor_parallel: int
    quantization: str
    max_model_tokens: int
    usable: int
    enough: int | None
    memory: _Memory

    def unsupported(self) -> str:
        return (
            f"{self.model.name} in fp8 needs a GPU with fp8 units (Ada, Hopper or newer); "
            f"{self.gpu.title} has none: use quantization none or int4, or another gpu.product"
        )

    def ranks_on_slices(self) -> str:
        return (
            f"an engine's process finds one slice of a GPU alone, so tensorParallel "
            f"{self.tensor_parallel} cannot run on {self.gpu.title}: set gpu.tensorParallel to 1 "
            "and take a larger slice, or whole GPUs"
        )

    def weights_do_not_fit(self) -> str:
        return (
            f"{self._subject()} needs {_gb(self._weights())} for its weights; {self._offer()}"
            f": {self._mend()}"
        )

    def longer_than_context(self) -> str:
        most = self.model.max_context_tokens
        variable = context.VARIABLES.get(self.memory.engine)
        allowed = f", or set {variable}=1 in engine.env" if variable else ""
        return (
            f"{self.model.name} has a context of {most} tokens, but engine.maxModelLength is "
            f"{self.max_model_tokens}: lower it to {most} or less, or leave it out{allowed}"
        )

    def no_room(self, tokens: int) -> str:
        left = max(0, self.usable * self.tensor_parallel - self._weights())
        return (
            f"{self._subject()} leaves {_gb(left)} for the KV cache, room for {tokens} tokens, but "
            f"engine.maxModelLength is {self.max_model_tokens}: {self._mend(tokens)}"
        )

    def fits(self, tokens: int) -> str:
        return (
            f"{self._subject()} needs {_gb(self._weights())} for its weights; {self._offer()}, "
            f"so the KV cache holds {tokens} tokens"
        )

    def _weights(self) -> int:
        return self.model.weight_bytes(self.quantization)

    def _subject(self) -> str:
        weights = "" if self.quantization == Quantization.NONE else f" in {self.quantization}"
        return f"{self.model.name}{weights} at tensorParallel {self.tensor_parallel}"

    def _offer(self) -> str:
        many = self.tensor_parallel > 1
        count = f"{self.tensor_parallel} × {self.gpu.title} offer" if many else self._one()
        total = _gb(self.usable * self.tensor_parallel)
        return f"{count} {total} after the engine's own share"

    def _one(self) -> str:
        return f"one {self.gpu.title} offers"

    def _mend(self, tokens: int = 0) -> str:
        shorter = f"lower engine.maxModelLength to {tokens} or less" if tokens else ""
        if self.enough is not None and self.enough > self.tensor_parallel:
            left = self.usable * self.enough - self._weights()
            more = f"tensorParallel {self.enough} would leave {_gb(left)} for the KV cache"
            return f"{more}, or {shorter}" if shorter else more
        if shorter:
            return shorter
        if self.gpu.mig_profile:
            nothing = "take a larger slice, or a whole GPU"
        else:
            biggest = TENSOR_PARALLEL_SIZES[-1]
            nothing = f"no tensorParallel up to {biggest} is enough; take a GPU with more memory"
        return nothing + self._smaller_quantization()

    def _smaller_quantization(self) -> str:
        """The first smaller format that fits, as the end of a sentence; empty if none does."""
        formats = list(Quantization)
        for quantization in formats[formats.index(Quantization(self.quantization)) + 1 :]:
            size = _smallest(self.model, self.gpu, quantization, self.max_model_tokens, self.memory)
            if size is not None and _supported(self.model, self.gpu, quantization):
                return f", or quantization {quantization} with tensorParallel {size}"
        return ""


def _gb(n_bytes: int) -> str:
    return quantities.format_bytes(n_bytes)
