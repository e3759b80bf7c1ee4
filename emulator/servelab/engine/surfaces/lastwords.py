"""What engines say when they end before they serve, or while they do.

vLLM's lines are 0.33's (``v1/engine/core.py`` and ``utils.py``, ``v1/core/kv_cache_planning.py``)
without the frames of its tracebacks; the root's words are PyTorch's and safetensors'.
"""

from collections.abc import Sequence

from modelserve.api.spec import EngineType
from modelserve.catalog import gpus
from modelserve.engines import kv, launch
from servelab.engine import stamps

# What an allocation asks for that finds no room, and what is free then; of a vLLM on an H100.
ASKED_MIB, FREE_MIB = 224.0, 175.0
# Of a process on a GPU what PyTorch did not allocate: the CUDA context.
CONTEXT_GIB = 0.51

_CORE = f"(EngineCore pid=134) ERROR {stamps.mark('%m-%d %H:%M:%S')}"
_API = f"(APIServer pid=1) ERROR {stamps.mark('%m-%d %H:%M:%S')}"
_TGI = f"{stamps.mark('%Y-%m-%dT%H:%M:%S.%fZ')} ERROR text_generation_launcher"
_SGLANG = stamps.mark("%Y-%m-%d %H:%M:%S")
_TRACEBACK = "Traceback (most recent call last):"
_CONSERVING = (
    "See https://docs.vllm.ai/en/latest/configuration/conserving_memory/ for more details."
)


def out_of_memory(gpu_memory_gib: float) -> str:
    """PyTorch's, where an allocation finds no room."""
    used_gib = gpu_memory_gib - FREE_MIB / 1024
    return (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {ASKED_MIB:.2f} MiB. GPU 0 "
        f"has a total capacity of {gpu_memory_gib:.2f} GiB of which {FREE_MIB:.2f} MiB is free. "
        f"Including non-PyTorch memory, this process has {used_gib:.2f} GiB memory in use. Of the "
        f"allocated memory {max(0.0, used_gib - CONTEXT_GIB):.2f} GiB is allocated by PyTorch, and "
        "2.00 MiB is reserved by PyTorch but unallocated."
    )


def not_started(engine: EngineType, root: str) -> Sequence[str]:
    """The lines of an engine whose start ends with that error."""
    if engine is EngineType.VLLM:
        return (
            f"{_CORE} [core.py:1584] EngineCore failed to start.",
            f"{_CORE} [core.py:1584] {_TRACEBACK}",
            f"{_CORE} [core.py:1584] {root}",
            "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause "
            "above. Failed core proc(s): {}",
        )
    if engine is EngineType.SGLANG:
        return _sglang(root)
    if engine is EngineType.TGI:
        return (
            f"{_TGI}: Error when initializing model",
            _TRACEBACK,
            root,
            f"{_TGI}: Shard 0 failed to start",
            "Error: ShardCannotStart",
        )
    return (_TRACEBACK, root)


def died(engine: EngineType, root: str) -> Sequence[str]:
    """The lines of an engine that this error ends while it serves."""
    if engine is EngineType.VLLM:
        return (
            f"{_CORE} [core.py:1586] EngineCore encountered a fatal error.",
            f"{_CORE} [core.py:1586] {_TRACEBACK}",
            f"{_CORE} [core.py:1586] {root}",
            f"{_API} [async_llm.py:943] AsyncLLM output_handler failed.",
            f"{_API} [async_llm.py:943] vllm.v1.engine.exceptions.EngineDeadError: EngineCore "
            "encountered an issue. See stack trace (above) for the root cause.",
        )
    return _sglang(root) if engine is EngineType.SGLANG else (_TRACEBACK, root)


def kv_shortage(started: launch.Launch, gpu: gpus.Gpu) -> str:
    """vLLM's error where the KV cache is too small for a request of the maximum length."""
    room = kv.room_bytes(
        *(started.model, gpu, started.tensor_parallel, started.quantization),
        started.gpu_memory_utilization,
    )
    if room <= 0:
        return (
            "ValueError: No available memory for the cache blocks. Try increasing "
            "`gpu_memory_utilization` when initializing the engine (this flag also controls CPU "
            f"memory reservation on the CPU backend, despite its name). {_CONSERVING}"
        )
    length, longest = started.max_model_tokens, kv.longest_tokens(started, gpu)
    needed = kv.longest_bytes(started)
    estimated = f"Based on the available memory, the estimated maximum model length is {longest}. "
    return (
        f"ValueError: To serve at least one request with the model's max seq len ({length}), "
        f"({_gib(needed)} GiB KV cache is needed, which is larger than the available KV cache "
        f"memory ({_gib(room)} GiB). {estimated if longest else ''}Try increasing "
        "`gpu_memory_utilization` (which also controls CPU memory on the CPU backend) or "
        f"decreasing `max_model_len` when initializing the engine. {_CONSERVING}"
    )


def _sglang(root: str) -> Sequence[str]:
    return (
        f"[{_SGLANG} TP0] Scheduler hit an exception: {_TRACEBACK}",
        root,
        f"[{_SGLANG}] Received sigquit from a child process. It usually means the child failed.",
    )


def _gib(n_bytes: float) -> str:
    return str(round(n_bytes / 2**30, 2))
