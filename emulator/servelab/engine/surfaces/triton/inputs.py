"""The core's look at the inputs of a request, after core/src/infer_request.cc (Normalize)."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from servelab.engine.surfaces.triton.refusals import TritonError
from servelab.engine.surfaces.triton.tensors import FORMATS, Tensor

_BATCH_NOTE = (
    "NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to be "
    "prepended to each input shape. If you want to specify the full shape including the batch dim "
    "in your input dims config, try setting max_batch_size to zero. See the model configuration "
    "docs for more info on max_batch_size."
)


@dataclass(frozen=True, slots=True)
class Spec:
    """An input as a model's configuration has it: dimensions without the batch's."""

    name: str
    datatype: str
    dims: tuple[int, ...]
    optional: bool


def check(
    tensors: Sequence[Tensor], specs: Sequence[Spec], model: str, max_batch_size: int, request: str
) -> None:
    """The core's own look at the inputs; ``request`` begins its messages. Raises TritonError."""
    known = {spec.name: spec for spec in specs}
    check_count([tensor.name for tensor in tensors], specs, model, request)
    ordered = sorted(tensors, key=lambda tensor: tensor.name)
    batch = 0
    for tensor in ordered:
        if tensor.name not in known:
            raise TritonError(f"unexpected inference input '{tensor.name}' for model '{model}'")
        if not tensor.shape:
            raise TritonError(
                f"{request}input '{tensor.name}' has no shape but model requires batch dimension "
                f"for '{model}'"
            )
        if batch and tensor.shape[0] != batch:
            raise TritonError(
                f"{request}input '{tensor.name}' batch size does not match other inputs for "
                f"'{model}'"
            )
        batch = tensor.shape[0]
    if batch > max_batch_size:
        raise TritonError(
            f"{request}inference request batch-size must be <= {max_batch_size} for '{model}'"
        )
    for tensor in ordered:
        _check_one(tensor, known[tensor.name], model, request)


def check_count(given: Sequence[str], specs: Sequence[Spec], model: str, request: str) -> None:
    """Whether as many inputs are there as must be. Raises TritonError."""
    required = [spec.name for spec in specs if not spec.optional]
    if len(required) <= len(given) <= len(specs):
        return
    missing = ",".join(f"'{name}'" for name in required if name not in given)
    got = ",".join(f"'{name}'" for name in sorted(given))
    raise TritonError(
        f"{request}expected number of inputs between {len(required)} and {len(specs)} but got "
        f"{len(given)} inputs for model '{model}'. Got input(s) [{got}], but missing required "
        f"input(s) [{missing}]. Please provide all required input(s)."
    )


def _check_one(tensor: Tensor, spec: Spec, model: str, request: str) -> None:
    name = tensor.name
    if tensor.datatype != spec.datatype:
        raise TritonError(
            f"{request}inference input '{name}' data-type is '{tensor.datatype}', but model "
            f"'{model}' expects '{spec.datatype}'"
        )
    dims = tensor.shape[1:]
    if len(dims) != len(spec.dims) or any(
        wanted not in (-1, size) for wanted, size in zip(spec.dims, dims, strict=True)
    ):
        raise TritonError(
            f"{request}unexpected shape for input '{name}' for model '{model}'. Expected "
            f"[{','.join(map(str, (-1, *spec.dims)))}], got "
            f"[{','.join(map(str, tensor.shape))}]. {_BATCH_NOTE}"
        )
    if tensor.datatype == "BYTES":
        _check_texts(tensor, model, request)
    elif tensor.n_bytes >= 0:
        expected = tensor.elements * struct.calcsize(f"<{FORMATS[tensor.datatype]}")
        if tensor.n_bytes != expected:
            raise TritonError(
                f"{request}input byte size mismatch for input '{name}' for model '{model}'. "
                f"Expected {expected}, got {tensor.n_bytes}"
            )


def _check_texts(tensor: Tensor, model: str, request: str) -> None:
    count, wanted = len(tensor.values), tensor.elements
    about = f"for inference input '{tensor.name}' for model '{model}'"
    if count > wanted:
        raise TritonError(
            f"{request}unexpected number of string elements {wanted + 1} {about}, expecting "
            f"{wanted}"
        )
    if count < wanted:
        raise TritonError(f"{request}expected {wanted} string elements {about}, got {count}")
