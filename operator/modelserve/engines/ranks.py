"""Ranks of an engine against the GPUs that its processes find: too few, and it does not start.

A CUDA process finds one slice of a GPU (MIG), however many its container has (CUDA 11 and 12, MIG
user guide), so ranks cannot be slices. vLLM counts before it loads anything (``__post_init__`` of
its config/parallel.py), TensorRT-LLM too; of the others the second rank finds no device.
"""

from modelserve import errors
from modelserve.api.spec import EngineType
from modelserve.engines import types

# Options by which an engine's ranks may be elsewhere.
BACKEND, NODES = "distributed-executor-backend", "nnodes"
_LIKE_VLLM = frozenset({EngineType.VLLM, EngineType.NIM})


def check(launch: types.Launch, found: int) -> None:
    """Raises StartRefused, in the engine's words, if it finds fewer GPUs than it has ranks."""
    ranks, options = launch.tensor_parallel, dict(launch.options)
    elsewhere = options.get(BACKEND) == "ray" or options.get(NODES, "1") != "1"
    if ranks <= found or elsewhere:
        return
    # A vLLM that is told its backend does not count.
    if launch.engine in _LIKE_VLLM and BACKEND not in options:
        raise errors.StartRefused(
            "pydantic_core._pydantic_core.ValidationError: 1 validation error for ParallelConfig\n"
            f"  Value error, World size ({ranks}) is larger than the number of available GPUs "
            f"({found}) in this node. If this is intentional and you are using:\n"
            "- ray, set '--distributed-executor-backend ray'.\n"
            "- multiprocessing, set '--nnodes' appropriately. [type=value_error, "
            "input_value=ArgsKwargs((), {'pipeline_parallel_si..._expert_parallel': False}), "
            "input_type=ArgsKwargs]"
        )
    if launch.engine is EngineType.TENSORRT_LLM:
        raise errors.StartRefused(
            f"RuntimeError: Only {found} GPUs are available, but {ranks} are required."
        )
    raise errors.StartRefused(
        "torch.AcceleratorError: CUDA error: invalid device ordinal\n"
        "GPU device may be out of range, do you have enough GPUs?\n"
        "CUDA kernel errors might be asynchronously reported at some other API call, so the "
        "stacktrace below might be incorrect.\n"
        "For debugging consider passing CUDA_LAUNCH_BLOCKING=1"
    )
