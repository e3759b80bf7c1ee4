"""Tensors of the inference protocol: as JSON, and as bytes after it.

Rules and wording are those of server/src/http_server.cc and of common's triton_json.h.
"""

import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from servelab.engine.surfaces.triton import refusals
from servelab.engine.surfaces.triton.refusals import TritonError

# struct's letters; the formats that are told as numbers, and only as bytes.
FORMATS = {
    "BOOL": "?",
    "INT8": "b",
    "INT16": "h",
    "INT32": "i",
    "INT64": "q",
    "UINT8": "B",
    "UINT16": "H",
    "UINT32": "I",
    "UINT64": "Q",
    "FP16": "e",
    "FP32": "f",
    "FP64": "d",
}
_BYTES_ONLY = frozenset({"FP16", "BF16"})
_MOST_DEPTH = 100
_LARGEST = 2**63 - 1
_PLACES = ("data", "binary_data_size", "shared_memory_region")


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor with its values in a row; texts are of the type BYTES."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    values: tuple[Any, ...]
    n_bytes: int = -1  # of a binary one; its values may not fit its shape

    @property
    def elements(self) -> int:
        """How many its shape says."""
        return math.prod(self.shape)


def member(document: Mapping[str, Any], name: str, kind: type, word: str) -> Any:
    """A member of that kind. Raises TritonError in the words of Triton's JSON."""
    if name not in document:
        raise TritonError(
            f"Unable to parse '{name}': attempt to access non-existing object member '{name}'"
        )
    value = document[name]
    if not isinstance(value, kind):
        raise TritonError(f"Unable to parse '{name}': attempt to access JSON non-{word} as {word}")
    return value


def read(inputs: Sequence[Any], after: bytes, model: str, has_length: bool) -> list[Tensor]:
    """All inputs; ``after`` are the bytes behind the JSON. Raises TritonError."""
    found: list[Tensor] = []
    for given in inputs:
        each = given if isinstance(given, dict) else {}
        parameters = _checked_place(each)
        name = member(each, "name", str, "string")
        datatype = member(each, "datatype", str, "string")
        shape = _shape(each)
        if any(name == other.name for other in found):
            raise TritonError(f"{refusals.request('')}input '{name}' already exists in request")
        if "binary_data_size" in parameters:
            size = _unsigned(parameters["binary_data_size"], "Unable to parse 'binary_data_size'")
            if size and not has_length:
                raise TritonError(
                    "must specify valid 'Infer-Header-Content-Length' in request header and "
                    "'binary_data_size' when passing inputs in binary data format"
                )
            data, after = after[:size], after[size:]
            if len(data) < size:
                raise TritonError(
                    f"unexpected size for input '{name}', expecting {size - len(data)} additional "
                    f"bytes for model '{model}'"
                )
            found.append(Tensor(name, datatype, shape, _unpacked(datatype, data), len(data)))
        elif "shared_memory_region" in parameters:
            region = parameters["shared_memory_region"]
            raise TritonError(f"Unable to find shared memory region: '{region}'", 404)
        else:
            found.append(Tensor(name, datatype, shape, _listed(name, datatype, shape, each)))
    if after:
        raise TritonError(f"unexpected additional input data for model '{model}'")
    return found


def packed(datatype: str, values: Iterable[Any]) -> bytes:
    """Values as they stand behind the JSON: texts after their lengths, little-endian."""
    if datatype == "BYTES":
        texts = (value.encode() for value in values)
        return b"".join(struct.pack("<I", len(text)) + text for text in texts)
    every = list(values)
    return struct.pack(f"<{len(every)}{FORMATS[datatype]}", *every)


def _checked_place(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Parameters of an input whose data is in one place. Raises TritonError."""
    told = given.get("parameters")
    parameters: Mapping[str, Any] = told if isinstance(told, dict) else {}
    has = [place for place in _PLACES if place in (given if place == "data" else parameters)]
    if len(has) != 1:
        which = " no field is set" if not has else " set " + " ".join(f"'{each}'" for each in has)
        raise TritonError(
            "Input must set only one of the following fields: 'data', 'binary_data_size' in "
            f"'parameters', 'shared_memory_region' in 'parameters'. But{which}"
        )
    return parameters


def _shape(given: Mapping[str, Any]) -> tuple[int, ...]:
    told = member(given, "shape", list, "array")
    return tuple(_unsigned(size, "Unable to parse 'shape'") for size in told)


def _unsigned(value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        word = "unsigned-integer"
        raise TritonError(f"{where}: attempt to access JSON non-{word} as {word}")
    return value


def _unpacked(datatype: str, data: bytes) -> tuple[Any, ...]:
    """As many whole values as the bytes hold."""
    if datatype == "BYTES":
        texts: list[str] = []
        while len(data) >= 4:
            (size,) = struct.unpack_from("<I", data)
            texts.append(data[4 : 4 + size].decode(errors="replace"))
            data = data[4 + size :]
        return tuple(texts)
    kind = FORMATS.get(datatype)
    if kind is None:
        return ()
    count = len(data) // struct.calcsize(f"<{kind}")
    return struct.unpack_from(f"<{count}{kind}", data)


def _listed(
    name: str, datatype: str, shape: Sequence[int], given: Mapping[str, Any]
) -> tuple[Any, ...]:
    """Values told as JSON, nested or not. Raises TritonError."""
    expected = math.prod(shape)
    if expected > _LARGEST:
        raise TritonError(
            f"invalid shape for input '{name}': shape [{','.join(map(str, shape))}] causes total "
            f"element count to exceed maximum size of {_LARGEST}"
        )
    if expected == 0:
        return ()
    data = member(given, "data", list, "array")
    if datatype in _BYTES_ONLY:
        raise TritonError(
            f"receiving {datatype} data via JSON is not supported. Please use the binary data "
            f"format for input {name}"
        )
    if datatype not in FORMATS and datatype != "BYTES":
        raise TritonError(f"invalid datatype for input {name}")
    values = tuple(_flattened(data, datatype))
    # The core counts texts, by their bytes; the front end all else.
    if datatype != "BYTES" and len(values) != expected:
        raise TritonError(
            "Unable to parse 'data': Shape does not match true shape of 'data' field", 500
        )
    return values


def _flattened(value: Any, datatype: str, depth: int = 0) -> Iterable[Any]:
    if depth >= _MOST_DEPTH:
        raise TritonError(f"JSON nesting depth exceeds maximum allowed limit ({_MOST_DEPTH})")
    if isinstance(value, list):
        for each in value:
            yield from _flattened(each, datatype, depth + 1)
        return
    if not fits(datatype, value):
        where = "JSON bytes array" if datatype == "BYTES" else "'data'"
        word = kind_of(datatype)
        asked = "double" if word == "number" else word
        raise TritonError(f"Unable to parse {where}: attempt to access JSON non-{word} as {asked}")
    yield value


def fits(datatype: str, value: Any) -> bool:
    """Whether a JSON value can be of a type."""
    if datatype in ("BYTES", "STRING"):
        return isinstance(value, str)
    if datatype == "BOOL" or isinstance(value, bool):
        return datatype == "BOOL" and isinstance(value, bool)
    if datatype.startswith("UINT"):
        return isinstance(value, int) and 0 <= value < 2**64
    if datatype.startswith("INT"):
        return isinstance(value, int) and -(2**63) <= value < 2**63
    return isinstance(value, (int, float))


def kind_of(datatype: str) -> str:
    """What Triton's JSON calls a type."""
    if datatype in ("BYTES", "STRING"):
        return "string"
    if datatype == "BOOL":
        return "boolean"
    if datatype.startswith("UINT"):
        return "unsigned-integer"
    return "signed-integer" if datatype.startswith("INT") else "number"
