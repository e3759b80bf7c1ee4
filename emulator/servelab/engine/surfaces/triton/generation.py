"""Triton's generate extension: a JSON object of tensors in, one of tensors out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from servelab.engine.calls import Call, Prompt
from servelab.engine.exchange import Response
from servelab.engine.metrics import triton as metrics
from servelab.engine.replying import Choice, StreamedReply, WholeReply
from servelab.engine.surfaces import events, fastapi
from servelab.engine.surfaces.triton import documents, inputs, refusals, repository, tensors
from servelab.engine.surfaces.triton.refusals import TritonError
from servelab.engine.text import encoding

ONE_RESPONSE = (
    "generate expects model to produce exactly 1 response, use generate stream for model that "
    "generates various number of responses"
)
# What an ensemble's answers tell of sequences: its requests are of none.
SEQUENCE = {"sequence_id": 0, "sequence_start": False, "sequence_end": False}
COUNTS = ("num_input_tokens", "num_output_tokens")
_TYPES = {name: (kind, shape) for name, kind, shape in repository.INPUTS}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a request asks for beside the text."""

    call: Call
    id: str
    model: str
    prompt: str  # told before the answer, if that was asked for
    log_probs: bool
    counts: tuple[str, ...]  # outputs that count tokens
    streams: bool


def parse(body: bytes, model: str, *, stream: bool) -> Wanted:
    """A generate request. Raises TritonError."""
    document = documents.loaded(body)
    name = request_id(document)
    given = _flat(document)
    for each, value in given.items():
        if each not in _TYPES:
            check_parameter(each, value)
    found = {each: _tensor(each, value) for each, value in given.items() if each in _TYPES}
    inputs.check_count(list(found), repository.SPECS, model, refusals.request(name))
    return wanted(found, model, name, stream=stream)


def request_id(document: Mapping[str, Any]) -> str:
    """The request's name; empty where it has none. Raises TritonError."""
    return str(tensors.member(document, "id", str, "string")) if "id" in document else ""


def check_parameter(name: str, value: Any) -> None:
    """What is no tensor is a parameter, of a simple type. Raises TritonError."""
    if not isinstance(value, (str, int, float)):
        raise TritonError(
            f"parameter '{name}' has invalid type. It should be either 'int', 'bool', or 'string'."
        )


def wanted(found: Mapping[str, Sequence[Any]], model: str, name: str, *, stream: bool) -> Wanted:
    """What the tensors of a text model ask for. Raises TritonError."""
    if any(each not in found for each in repository.REQUIRED):
        # As many inputs as must be, but not those: the first step never has all of its own.
        never = "at least one output is not set while no more ensemble steps can be made"
        where = None if model == metrics.BLS_MODEL else model
        raise refusals.backend(f"{refusals.request(name)}unexpected deadlock, {never}", where, 400)
    text, limit = str(found["text_input"][0]), int(found["max_tokens"][0])
    seed = found.get("seed")
    call = Call(
        chat=False,
        prompts=(Prompt(encoding.count(text) or 1, text),),
        max_tokens=max(1, limit),
        stream=stream,
        min_tokens=int(found.get("min_tokens", [0])[0]),
        seed=int(seed[0]) if seed else None,
        stop=tuple(str(word) for word in found.get("stop_words", ()) if word),
    )
    includes = list(found.get("exclude_input_in_output", ())) == [False]
    counts = (each for each in COUNTS if _is_on(found, f"return_{each}"))
    return Wanted(
        call,
        name,
        model,
        text if includes else "",
        log_probs=_is_on(found, "return_log_probs"),
        counts=tuple(counts),
        streams=_is_on(found, "stream"),
    )


def _is_on(found: Mapping[str, Sequence[Any]], name: str) -> bool:
    return bool(found.get(name, [False])[0])


def _flat(document: dict[str, Any]) -> dict[str, Any]:
    """Tensors may stand under ``parameters`` too."""
    nested = document.get("parameters", {})
    if not isinstance(nested, dict):
        told = "attempt to access JSON non-object as object"
        raise TritonError(f"Expected JSON object for keyword: 'parameters': {told}")
    return {**{k: v for k, v in document.items() if k != "parameters"}, **nested}


def _tensor(name: str, value: Any) -> list[Any]:
    """One value or a list of one dimension as a tensor of its type."""
    kind, shape = _TYPES[name]
    values = value if isinstance(value, list) else [value]
    fixed = [size for size in shape if size != -1]
    if (fixed and len(values) % fixed[-1]) or (shape == (1,) and len(values) != 1):
        raise TritonError(f"The schema can not convert input '{name}' to tensor with proper shape")
    if not all(tensors.fits(kind, each) for each in values):
        word = tensors.kind_of(kind)
        where = "JSON bytes array" if kind == "STRING" else "'data'"
        asked = "double" if word == "number" else word
        raise TritonError(f"Unable to parse {where}: attempt to access JSON non-{word} as {asked}")
    return values


def _document(wanted: Wanted, text: str, tokens: int) -> bytes:
    """One response, its names in the order of the alphabet."""
    told: dict[str, Any] = {
        "model_name": wanted.model,
        "model_version": metrics.VERSION,
        "text_output": text,
        **{name: counted(wanted, name, tokens) for name in wanted.counts},
    }
    if wanted.model != metrics.BLS_MODEL:
        told |= SEQUENCE
    if wanted.id:
        told["id"] = wanted.id
    if wanted.log_probs:
        # No model runs here: every token is as good as certain.
        told |= {"cum_log_probs": 0.0, "output_log_probs": [0.0] * tokens}
    return events.compact(dict(sorted(told.items())))


def counted(wanted: Wanted, name: str, tokens: int) -> int:
    """An output that counts tokens."""
    return wanted.call.prompts[0].tokens if name == "num_input_tokens" else tokens


class Generated(WholeReply):
    """One response; where a stream was asked for there are several, which is an error here."""

    def __init__(self, wanted: Wanted) -> None:
        super().__init__(wanted.call)
        self._wanted = wanted

    def response(self) -> Response:
        """The whole answer."""
        (choice,) = self.choices
        tokens = self.completion_tokens
        if self._wanted.streams and tokens != 1:
            return fastapi.document({"error": ONE_RESPONSE})
        text = self._wanted.prompt + choice.text
        return Response(200, _document(self._wanted, text, tokens))


class GeneratedStream(StreamedReply):
    """A response for each token, or, where no stream was asked for, one with all of them."""

    def __init__(self, wanted: Wanted) -> None:
        super().__init__(wanted.call)
        self._wanted = wanted

    def tell(self, choice: Choice, text: str, parts: list[bytes]) -> None:
        """One more token."""
        if self._wanted.streams:
            parts.append(self._event(text, 1))

    def finish(self, parts: list[bytes]) -> None:
        """All tokens at once, where they were not told one by one."""
        if not self._wanted.streams:
            (choice,) = self.choices
            parts.append(self._event(self._wanted.prompt + choice.text, self.completion_tokens))

    def _event(self, text: str, tokens: int) -> bytes:
        return b"data: " + _document(self._wanted, text, tokens) + b"\n\n"
