"""Ranks of an engine against the GPUs that its processes find: too few, and it does not start.

A CUDA process finds one slice of a GPU (MIG), however many its container has (CUDA 11 and 12, MIG
user guide), so ranks cannot be slices. The words are the engines' own: vLLM counts before it loads
anything (``__post_init__`` of its config/parallel.py), TensorRT-LLM too (``LLM.__init__``,
llmapi/llm.py; its issue 2594), TGI in each shard (server/.../utils/dist.py). In SGLang the second
rank finds no device (``set_device``; THUDM/slime issue 1326), in PyTorch 2.8's words
(c10/cuda/CUDAMiscFunctions.cpp, CUDAException.cpp); Triton is taken to end the same way.
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
    if launch.engine is EngineType.TGI:
        raise errors.StartRefused("AssertionError: Each process is one gpu")
    raise errors.StartRefused(
        "torch.AcceleratorError: CUDA error: invalid device ordinal\n"
        "GPU device may be out of range, do you have enough GPUs?\n"
        "CUDA kernel errors might be asynchronously reported at some other API call, so the "
        "stacktrace below might be incorrect.\n"
        "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
        "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions."
    )
