"""Triton's generate extension: a JSON object of tensors in, one of tensors out."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from servelab.engine.calls import Call, Prompt
from servelab.engine.exchange import EVENT_STREAM, Response
from servelab.engine.metrics import triton as metrics
from servelab.engine.replying import Choice, StreamedReply, WholeReply
from servelab.engine.surfaces import events, fastapi
from servelab.engine.surfaces.triton import repository
from servelab.engine.surfaces.triton.repository import TritonError
from servelab.engine.text import encoding

ONE_RESPONSE = (
    "generate expects model to produce exactly 1 response, use generate stream for model that "
    "generates various number of responses"
)
_TYPES = {name: (kind, shape) for name, kind, shape in repository.INPUTS}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a request asks for beside the text."""

    call: Call
    id: str
    prompt: str
    log_probs: bool
    streams: bool


def parse(body: bytes, model: str, *, stream: bool) -> Wanted:
    """A generate request. Raises TritonError."""
    given = _flat(_loaded(body))
    tensors = {name: _tensor(name, value) for name, value in given.items() if name in _TYPES}
    name = str(given.get("id", ""))
    _check_required(tensors, model, name)
    text, limit = str(tensors["text_input"][0]), int(tensors["max_tokens"][0])
    stops = tuple(str(word) for word in tensors.get("stop_words", ()) if word)
    seed = tensors.get("seed")
    call = Call(
        chat=False,
        prompts=(Prompt(encoding.count(text) or 1, text),),
        max_tokens=max(1, limit),
        stream=stream,
        min_tokens=int(tensors.get("min_tokens", [0])[0]),
        seed=int(seed[0]) if seed else None,
        stop=stops,
    )
    includes = tensors.get("exclude_input_in_output") == [False]
    return Wanted(
        call,
        name,
        text if includes else "",
        bool(tensors.get("return_log_probs", [False])[0]),
        bool(tensors.get("stream", [False])[0]),
    )


def _loaded(body: bytes) -> dict[str, Any]:
    if not body:
        return {}
    try:
        document = json.loads(body)
    except json.JSONDecodeError as error:
        message = f"failed to parse the request JSON buffer: {error.msg}. at {error.pos}"
        raise TritonError(message) from None
    except (ValueError, RecursionError):
        raise TritonError("failed to parse the request JSON buffer: Invalid value. at 0") from None
    if not isinstance(document, dict):
        raise TritonError("failed to parse the request JSON buffer: not an object. at 0")
    return document


def _flat(document: dict[str, Any]) -> dict[str, Any]:
    """Tensors may stand under ``parameters`` too."""
    nested = document.get("parameters", {})
    if not isinstance(nested, dict):
        raise TritonError("Expected JSON object for keyword: 'parameters'")
    return {**{k: v for k, v in document.items() if k != "parameters"}, **nested}


def _tensor(name: str, value: Any) -> list[Any]:
    """One value or a list of one dimension as a tensor of its type."""
    kind, shape = _TYPES[name]
    values = value if isinstance(value, list) else [value]
    fixed = [size for size in shape if size != -1]
    if (fixed and len(values) % fixed[-1]) or (shape == (1,) and len(values) != 1):
        raise TritonError(f"The schema can not convert input '{name}' to tensor with proper shape")
    if not all(_fits(kind, each) for each in values):
        raise TritonError(f"Unable to parse 'data' of input '{name}': attempt to access JSON "
                          f"non-{_word(kind)} as {_word(kind)}")  # fmt: skip
    return values


def _fits(kind: str, value: Any) -> bool:
    if kind == "STRING":
        return isinstance(value, str)
    if kind == "BOOL":
        return isinstance(value, bool)
    if isinstance(value, bool):
        return False
    return isinstance(value, int if kind in ("INT32", "UINT64") else (int, float))


def _word(kind: str) -> str:
    words = {"STRING": "string", "BOOL": "boolean", "INT32": "signed-integer"}
    return words.get(kind, "unsigned-integer" if kind == "UINT64" else "number")


def _check_required(tensors: Mapping[str, Any], model: str, name: str) -> None:
    missing = [f"'{each}'" for each in repository.REQUIRED if each not in tensors]
    if not missing:
        return
    got = ",".join(f"'{each}'" for each in sorted(tensors))
    raise TritonError(
        f"[request id: {name or '<id_unknown>'}] expected number of inputs between "
        f"{len(repository.REQUIRED)} and {len(repository.INPUTS)} but got {len(tensors)} inputs "
        f"for model '{model}'. Got input(s) [{got}], but missing required input(s) "
        f"[{','.join(missing)}]. Please provide all required input(s)."
    )


def _document(wanted: Wanted, model: str, text: str, tokens: int) -> bytes:
    """One response, its names in the order of the alphabet."""
    told: dict[str, Any] = {
        "model_name": model,
        "model_version": metrics.VERSION,
        "sequence_end": False,
        "sequence_id": 0,
        "sequence_start": False,
        "text_output": text,
    }
    if wanted.id:
        told["id"] = wanted.id
    if wanted.log_probs:
        # No model runs here: every token is as good as certain.
        told |= {"cum_log_probs": 0.0, "output_log_probs": [0.0] * tokens}
    return events.compact(dict(sorted(told.items())))


class Generated(WholeReply):
    """One response; where a stream was asked for there are several, which is an error here."""

    def __init__(self, wanted: Wanted, model: str) -> None:
        super().__init__(wanted.call)
        self._wanted = wanted
        self._model = model

    def response(self) -> Response:
        """The whole answer."""
        (choice,) = self.choices
        tokens = self.completion_tokens
        if self._wanted.streams and tokens != 1:
            return fastapi.document({"error": ONE_RESPONSE})
        text = self._wanted.prompt + choice.text
        return Response(200, _document(self._wanted, self._model, text, tokens))


class GeneratedStream(StreamedReply):
    """A response for each token, or, where no stream was asked for, one with all of them."""

    head = Response(content_type=EVENT_STREAM)

    def __init__(self, wanted: Wanted, model: str) -> None:
        super().__init__(wanted.call)
        self._wanted = wanted
        self._model = model

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
        return b"data: " + _document(self._wanted, self._model, text, tokens) + b"\n\n"
