"""Triton's inference protocol for the models of text: tensors in, tensors out, as JSON or bytes."""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from servelab.engine.exchange import Request, Response
from servelab.engine.metrics import triton as metrics
from servelab.engine.replying import WholeReply
from servelab.engine.surfaces import events
from servelab.engine.surfaces.triton import (
    documents,
    generation,
    inputs,
    refusals,
    repository,
    tensors,
)
from servelab.engine.surfaces.triton.refusals import TritonError

LENGTH = "Inference-Header-Content-Length"
BINARY = "application/octet-stream"
# What a compressed body may grow to; the real server has no such bound.
MOST_BYTES = 64 * 1024 * 1024
_OUTPUTS = {name: kind for name, kind, _ in repository.OUTPUTS}
# Where nobody says which, those that are not asked for by an input of their own.
_PLAIN = ("text_output",)
_LOG_PROBS = ("cum_log_probs", "output_log_probs")
_WINDOW = {"gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}


@dataclass(frozen=True, slots=True)
class Asked:
    """A checked request: what it wants, and which outputs it gets in which form."""

    wanted: generation.Wanted
    outputs: Mapping[str, bool]  # name → whether as bytes
    compression: str


def parse(request: Request, model: str, max_batch_size: int) -> Asked:
    """An infer request. Raises TritonError."""
    body = _decompressed(request)
    told = request.headers.get(LENGTH.lower())
    size = len(body) if told is None else _length(told, len(body))
    if size == 0:
        raise _raw(model)
    document = documents.loaded(body[:size])
    name = generation.request_id(document)
    as_bytes = _binary_by_default(document)
    given = tensors.member(document, "inputs", list, "array")
    found = tensors.read(given, body[size:], model, told is not None)
    outputs = _outputs(document, as_bytes)
    for each in outputs:
        if each not in _OUTPUTS:
            raise TritonError(f"unexpected inference output '{each}' for model '{model}'")
    said = refusals.request(name)
    inputs.check(found, repository.SPECS, model, max_batch_size, said)
    if any(tensor.shape[0] > 1 for tensor in found):
        where = None if model == metrics.BLS_MODEL else model
        policy = "requires the tensorrt_llm backend to be using decoupled transaction policy"
        raise refusals.backend(f"Batch size > 1 {policy}", where)
    values = {tensor.name: tensor.values for tensor in found if tensor.values}
    wanted = generation.wanted(values, model, name, stream=False)
    return Asked(wanted, outputs or _unsaid(wanted, as_bytes), _accepted(request))


class Inferred(WholeReply):
    """One response with all tensors."""

    def __init__(self, asked: Asked) -> None:
        super().__init__(asked.wanted.call)
        self._asked = asked

    def response(self) -> Response:
        """The whole answer: JSON, and after it the outputs that go as bytes."""
        wanted = self._asked.wanted
        told: dict[str, Any] = {"id": wanted.id} if wanted.id else {}
        told |= {"model_name": wanted.model, "model_version": metrics.VERSION}
        if wanted.model != metrics.BLS_MODEL:
            told["parameters"] = generation.SEQUENCE
        after = b""
        listed: list[dict[str, Any]] = []
        for name, as_bytes in sorted(self._asked.outputs.items()):
            tensor = self._output(name)
            output: dict[str, Any] = {
                "name": name,
                "datatype": tensor.datatype,
                "shape": list(tensor.shape),
            }
            if as_bytes:
                data = tensors.packed(tensor.datatype, tensor.values)
                output["parameters"] = {"binary_data_size": len(data)}
                after += data
            else:
                output["data"] = list(tensor.values)
            listed.append(output)
        head = events.compact(told | {"outputs": listed})
        return self._sent(head, after)

    def _sent(self, head: bytes, after: bytes) -> Response:
        headers = ((LENGTH, str(len(head))),) if after else ()
        kind = BINARY if after else "application/json"
        compression = self._asked.compression
        if not compression:
            return Response(200, head + after, kind, headers)
        packer = zlib.compressobj(wbits=_WINDOW[compression])
        body = packer.compress(head + after) + packer.flush()
        return Response(200, body, kind, (*headers, ("Content-Encoding", compression)))

    def _output(self, name: str) -> tensors.Tensor:
        wanted, tokens = self._asked.wanted, self.completion_tokens
        values: tuple[Any, ...] = (0,)
        shape: tuple[int, ...] = (1, 1)
        if name == "text_output":
            (choice,) = self.choices
            values = (wanted.prompt + choice.text,)
        elif name in generation.COUNTS:
            values = (generation.counted(wanted, name, tokens),)
        elif name == "cum_log_probs":
            values = (0.0,)
        elif name == "output_log_probs":
            # No model runs here: every token is as good as certain.
            values, shape = (0.0,) * tokens, (1, 1, tokens)
        return tensors.Tensor(name, repository.protocol(_OUTPUTS[name]), shape, values)


def _raw(model: str) -> TritonError:
    """A body without JSON stands for the model's one input, and these have many."""
    return TritonError(
        f"{refusals.request('')}Raw request must only have 1 input (found 1) to be deduced but got "
        f"{len(repository.SPECS)} inputs in '{model}' model configuration"
    )


def _length(told: str, size: int) -> int:
    """The JSON's part of the body; as C reads it, what is no number is 0. Raises TritonError."""
    digits = told.strip()
    value = int(digits) if digits.lstrip("+-").isdecimal() else 0
    if not 0 <= value <= size:
        raise TritonError(f"inference header size should be in range (0, {size}), got: {told}")
    return value


def _binary_by_default(document: Mapping[str, Any]) -> bool:
    """Whether outputs go as bytes where none is named. Raises TritonError."""
    if "parameters" not in document:
        return False
    given = tensors.member(document, "parameters", dict, "object")
    for name, value in given.items():
        if name.startswith("triton_"):
            raise TritonError(
                "parameter keys starting with 'triton_' are reserved for Triton usage and should "
                "not be specified."
            )
        if name in ("sequence_start", "sequence_end", "binary_data_output"):
            tensors.member(given, name, bool, "boolean")
        else:
            generation.check_parameter(name, value)
    return bool(given.get("binary_data_output", False))


def _outputs(document: Mapping[str, Any], as_bytes: bool) -> dict[str, bool]:
    """The outputs that are asked for; none where nobody says. Raises TritonError."""
    if "outputs" not in document:
        return {}
    found: dict[str, bool] = {}
    for given in tensors.member(document, "outputs", list, "array"):
        each = given if isinstance(given, dict) else {}
        name = str(tensors.member(each, "name", str, "string"))
        told = each.get("parameters")
        parameters: Mapping[str, Any] = told if isinstance(told, dict) else {}
        region = parameters.get("shared_memory_region")
        if region is not None:
            raise TritonError(f"Unable to find shared memory region: '{region}'", 404)
        found[name] = as_bytes
        if "binary_data" in parameters:
            found[name] = tensors.member(parameters, "binary_data", bool, "boolean")
    return found


def _unsaid(wanted: generation.Wanted, as_bytes: bool) -> dict[str, bool]:
    names = (*_PLAIN, *wanted.counts, *(_LOG_PROBS if wanted.log_probs else ()))
    return dict.fromkeys(names, as_bytes)


def _decompressed(request: Request) -> bytes:
    """The body as it was before it was compressed. Raises TritonError."""
    encoding = request.headers.get("content-encoding", "")
    if encoding in ("", "identity"):
        return request.body
    if encoding not in _WINDOW:
        raise TritonError("Unsupported compression type", refusals.UNSUPPORTED)
    try:
        unpacker = zlib.decompressobj(_WINDOW[encoding])
        return unpacker.decompress(request.body, MOST_BYTES)
    except zlib.error as error:
        raise TritonError(f"failed to decompress data: {error}") from None


def _accepted(request: Request) -> str:
    """The compression of the answer: what the client weighs most, the first of equals."""
    best, most = "", 0.0
    for told in request.headers.get("accept-encoding", "").split(","):
        name, _, weight = told.strip().partition(";q=")
        try:
            value = float(weight) if weight else 1.0
        except ValueError:
            continue
        if name in _WINDOW and value > most:
            best, most = name, value
    return best
